echo changed=yes comment=scripted
