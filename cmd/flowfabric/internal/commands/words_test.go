package commands

import (
	"testing"

	"github.com/spf13/cobra"
)

func TestU157_fields_are_flags_where_the_command_has_one(t *testing.T) {
	t.Parallel()
	cmd := &cobra.Command{Use: "submit [KIND] FILE..."}
	for _, name := range []string{"namespace", "role", "quota", "waitpoint", "expires", "max-affected", "lane"} {
		cmd.Flags().String(name, "", "")
	}
	if err := cmd.Flags().Set("quota", "x"); err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{
		"header.FlowFabric-Namespace": "--namespace", "header.If-None-Match": "header.If-None-Match", "header.Authorization": "FF_API_KEY", "/quotas/0/quota": "--quota", "/roles/0": "--role",
		"/lane/quota/0": "--quota", "query.max_affected": "--max-affected", "waitpoint_id": "--waitpoint", "/expires_in_ms": "--expires",
		"/tags/a": "/tags/a", "/kind": "KIND", "/kind/0": "/kind/0", "query.file": "FILE", "/submit": "/submit", "--store": "--store", "FILE": "FILE", "": "",
	} {
		if got := (words{cmd}).Field(field); got != want {
			t.Errorf("%q is %q, want %q", field, got, want)
		}
	}
	if got := (words{cmd}).Flag("max_affected"); got != "--max-affected" {
		t.Error(got)
	}
	if got := (words{cmd}).Flag("something_else"); got != "" {
		t.Error(got)
	}
}
