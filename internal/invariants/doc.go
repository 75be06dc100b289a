// Package invariants states what must hold of every execution, of its history and events, and of the indexes in which it is
// filed, whatever happened before. The statements are written down once more, apart from the rules that they check, and every
// finding begins with the name of what is broken. Tests use it; it knows neither the engine nor a database.
package invariants
