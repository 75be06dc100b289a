// Package condition holds the conditions under which a suspended execution resumes: reading and checking them, their stored form, and their evaluation
// over the signals that arrived.
//
// It knows no execution, no suspension and no waitpoint, only keys of waitpoints and evidence. It imports base and the standard library alone.
package condition
