au BufRead,BufNewFile pf.conf,pf.failsafe,pf.*.conf,*.pf,*.pf.conf,/etc/pf.anchors/* set filetype=skipstep-pf
au BufRead,BufNewFile *.scn set filetype=skipstep-scn
