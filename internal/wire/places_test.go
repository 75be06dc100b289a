package wire

import (
	"strings"
	"testing"
)

func TestU11_what_the_rules_refuse_is_told_under_the_parameter_that_gave_it(t *testing.T) {
	t.Parallel()
	for _, o := range Operations() {
		p := planOf(o.Request)
		for i := range p.params {
			param := &p.params[i]
			if param.argument == "id" || param.in == inHeader && param.argument == param.name {
				t.Errorf("%s: no rule calls an argument %q: say with the tag argument what it is", o.ID, param.field())
			}
			argument, want := param.argument, param.field()
			if param.codec.tags {
				argument, want = argument+`["app.tier"]`, want+"app.tier"
			}
			given := func(in, name string) bool { return in == string(param.in) && name == param.name }
			if got := Place(o, argument, given); got != want {
				t.Errorf("%s: %s comes by %s, and is named as %s", o.ID, argument, want, got)
			}
			none := func(string, string) bool { return false }
			if got := Place(o, argument, none); !strings.HasPrefix(got, "/") && len(p.carriersOf(argument)) == 1 && got != want {
				t.Errorf("%s: without it %s is named as %s", o.ID, want, got)
			}
		}
	}
}

func TestU11_an_argument_of_the_body_is_told_by_its_pointer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		operation      *Operation
		argument, want string
		given          string
	}{
		{operation: PutLane.Operation, argument: "revision", want: "header.If-Match"},
		{operation: PutLane.Operation, argument: "lane", want: "path.lane"},
		{operation: PutLane.Operation, argument: "request_key", want: "header.Idempotency-Key"},
		{operation: PutLane.Operation, argument: "fairness_weights.a", want: "/fairness_weights/a"},
		{operation: SubmitExecution.Operation, argument: "kind", want: "/kind"},
		{operation: SubmitExecution.Operation, argument: "kind", given: "query.kind", want: "query.kind"},
		{operation: SubmitExecution.Operation, argument: "tags.team", given: "query.tag.", want: "query.tag.team"},
		{operation: SubmitExecution.Operation, argument: `tags["a/b"]`, want: "/tags/a~1b"},
		{operation: SubmitExecution.Operation, argument: "quotas[1].key", want: "/quotas/1/key"},
		{operation: PatchTags.Operation, argument: "tags.team", want: "/team"},
		{operation: PatchTags.Operation, argument: "expect.status", want: "query.expect_status"},
		{operation: CompleteExecution.Operation, argument: "lease.lease_epoch", want: "/lease/lease_epoch"},
		{operation: CompleteExecution.Operation, argument: "lease.lease_epoch", given: "header.FlowFabric-Lease", want: "header.FlowFabric-Lease"},
		{operation: CompleteExecution.Operation, argument: "execution_id", want: "path.id"},
		{operation: RevokeAPIKey.Operation, argument: "force", want: "query.force"},
		{operation: ListExecutions.Operation, argument: "tags", want: "query.tag"},
		{operation: DeliverCallback.Operation, argument: "idempotency_key", want: "header.Webhook-Id"},
		{operation: DeliverCallback.Operation, argument: "idempotency_key", given: "header.Idempotency-Key", want: "header.Idempotency-Key"},
	} {
		given := func(in, name string) bool { return in+"."+name == c.given }
		if got := Place(c.operation, c.argument, given); got != c.want {
			t.Errorf("%s of %s with %q: %s, want %s", c.argument, c.operation.ID, c.given, got, c.want)
		}
	}
}
