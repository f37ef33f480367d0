echo script
