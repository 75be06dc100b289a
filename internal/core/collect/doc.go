// Package collect holds the rules of debounced and batched submits: submits of one key become items of one execution, which starts later.
//
// Everything here is a pure function of values. It knows nothing of an execution but whether it still collects. Its files:
//
//   - rule: what a submit states, and its bounds
//   - join: what becomes of a submit, and when the execution starts
//   - record: what is stored of an execution that collects
package collect
