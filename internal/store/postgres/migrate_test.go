package postgres

import (
	"testing"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/store"
)

func TestS13_classes_that_were_there_before_need_nothing_and_keep_their_numbers(t *testing.T) {
	t.Parallel()
	url := cluster.Empty(t)
	if _, err := Migrate(t.Context(), url, Config{}, Forward{To: 2, OnStep: func(store.SchemaStep) {}}); err != nil {
		t.Fatal(err)
	}
	// The digest is one that was written when classes had no needs.
	execute(t, connectAt(t, url), `insert into class (digest, namespace, lane, kind, capabilities, fairness_key, retired_at)
		values (decode('5cf1f9ef078efb8245e17bfc976561aa7a45f3b60832722398f16b00db703e88', 'hex'), 'default', 'default', 'mail', '{gpu}', 'f', 7)`)
	s := openAt(t, url, Config{})
	mail := core.Class{Namespace: "default", Lane: "default", Kind: "mail", Capabilities: []string{"gpu"}, FairnessKey: "f"}
	needy := mail
	needy.Needs = `{"q":[{"quota":"api"}]}`
	before, err := s.Dictionary(t.Context())
	if err != nil || len(before.Classes) != 1 || before.Classes[0].Needs != "" || len(before.Retired) != 1 {
		t.Fatalf("%+v, %v", before, err)
	}
	known, err := s.Register(t.Context(), nil, []core.Class{mail, needy})
	if err != nil || known.Classes[0] != before.Classes[0] || known.Classes[1].ID == known.Classes[0].ID || known.Classes[1].Needs != needy.Needs {
		t.Fatalf("%+v, %v", known, err)
	}
}
