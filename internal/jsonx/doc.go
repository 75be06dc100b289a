// Package jsonx reads JSON strictly, writes it quickly and describes how Go types are read. It knows no type of ours.
//
// Decode reads what callers send: every fault is found, with the JSON pointer of its field, a code and a hint (Error). DecodeLenient reads
// what servers answer, and ignores what it does not know. Marshal and Append write what encoding/json would, byte for byte. ShapeOf
// describes a type for those who document it.
//
// Types say by tags how they are read: json names a field as for encoding/json, required:"true" makes it mandatory, oneof:"group" lets
// at most one field of a group be given, most:"100" bounds the elements of a list or map, and inline:"true" reads the fields of a struct
// as if they were its owner's. Embedded structs are read so without a tag. A Reader reads itself, a Checker has rules on which of its
// fields go together, an Appender writes itself. A time.Time is a string and a time.Duration a number of milliseconds (U6):
// its name ends in _ms, or, where the name of the object around it does, it has the tag unit:"ms".
//
// What is known of a type is found out once and kept. jsonx imports the standard library alone. Rule numbers (U5, U6, ...) are those of
// the specification; tests cite them.
package jsonx
