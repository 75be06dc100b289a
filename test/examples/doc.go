// Package examples tells every story of the examples on every store and through a server, and checks what is then in the store: not
// the text of the story, but what happened. It looks at everything and nothing imports it.
package examples
