// Package unique holds the rule of unique submits: which submit of a key becomes an execution, and what becomes of the others.
//
// Everything here is a pure function of values. It knows nothing of an execution but what a Holder says. Its files:
//
//   - rule: what a submit states, and its bounds
//   - judge: the decision about one submit
//   - record: who holds a key, as it is stored
package unique
