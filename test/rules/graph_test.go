package rules

import "testing"

// graph is a flow and its members by name.
type graph struct {
	reply
	id, path string
}

// flow submits a flow, given as JSON.
func (w *world) flow(t testing.TB, body string) graph {
	t.Helper()
	made := w.post(t, "/v1/flows", body).wants(t, 201)
	return graph{made, made.text(t, "flow_id"), made.header.Get("Location")}
}

// member is the id of a member.
func (g graph) member(t testing.TB, name string) string {
	t.Helper()
	return g.text(t, "members."+name)
}
