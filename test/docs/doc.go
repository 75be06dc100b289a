// Package docs checks what the pages say against the tree: code is code that compiles, commands and files exist. It does not know
// what the pages are about.
package docs
