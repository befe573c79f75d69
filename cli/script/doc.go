// Package script is the grammar of command lines at the prompt, in a batch and in a file:
//
//	script   = line { ( "\n" | ";" ) line }
//	line     = [ repeat ] word { blank word } [ redirect ] | meta | comment | empty
//	repeat   = digits                        ; "5 publish t k v", only when followed by a word
//	word     = { bare | "'" raw "'" | '"' esc '"' }
//	esc      = \n \t \r \\ \" \0 \xHH \uHHHH
//	redirect = ( ">" | ">>" ) word
//	meta     = ":" name { blank word }
//	comment  = "#" …                          ; only at the start of a line
//
// [Parse] turns text into [Line] values and knows nothing of what the words mean. Text that ends inside a quote
// is [ErrUnfinished]: the prompt asks for more, a batch reports it. A word that is neither quoted nor special
// stays as it is: no globbing, no variables, and a backslash outside double quotes is a backslash.
package script
