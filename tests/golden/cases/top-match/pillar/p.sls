size: big
