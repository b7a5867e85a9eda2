" One tab for what stands in braces, and for a line that a backslash carries on: as pfctl fmt.

if exists("b:did_indent")
	finish
endif
let b:did_indent = 1

setlocal noexpandtab shiftwidth=8 indentexpr=SkipstepIndent() indentkeys=!^F,o,O,0}

function! SkipstepIndent()
	let before = prevnonblank(v:lnum - 1)
	if before == 0
		return 0
	endif
	let text = substitute(getline(before), '#.*', '', '')
	let width = indent(before)
	if text =~ '{\s*$' || (text =~ '\\$' && getline(before - 1) !~ '\\$')
		let width += shiftwidth()
	elseif text !~ '\\$' && getline(before - 1) =~ '\\$'
		let width -= shiftwidth()
	endif
	if getline(v:lnum) =~ '^\s*}'
		let width -= shiftwidth()
	endif
	return width
endfunction
