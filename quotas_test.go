package flowfabric_test

import (
	"slices"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/google/go-cmp/cmp"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
)

func TestU99_quotas_are_put_shown_listed_and_deleted(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, quotas := inTime(t), w.Quotas()
		if _, err := quotas.Get(ctx, "mail"); flowfabric.CodeOf(err) != "quota_not_found" {
			t.Errorf("Get of none = %v", err)
		}
		settings := api.QuotaSettings{RateLimit: 10, Window: time.Second, ConcurrencyLimit: 1, PerKey: true}
		made := must[*api.Quota](t)(quotas.Put(ctx, "mail", settings, ops.AdminAction{Reason: "they asked"}))
		if made.ID != "mail" || made.QuotaSettings != settings || made.Revision != 1 || made.CreatedAt.IsZero() {
			t.Errorf("made: %+v", made)
		}
		stale := made.Revision + 1
		if _, err := quotas.Put(ctx, "mail", settings, ops.AdminAction{Revision: &stale}); flowfabric.CodeOf(err) != "precondition_failed" {
			t.Errorf("Put of a stale revision = %v", err)
		}
		must[*api.Quota](t)(quotas.Put(ctx, "all", api.QuotaSettings{}))
		if got := must[*api.Quota](t)(quotas.Get(ctx, "all")).QuotaSettings; got != (api.QuotaSettings{Window: time.Minute}) {
			t.Errorf("defaults: %+v", got)
		}
		var ids []string
		for quota, err := range quotas.List(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, quota.ID)
		}
		if !slices.Equal(ids, []string{"all", "mail"}) {
			t.Errorf("listed: %v", ids)
		}
		if err := quotas.Delete(ctx, "all"); err != nil {
			t.Error(err)
		}
	})
}

func TestU134_a_submit_is_attached_to_quotas_by_options_and_by_policy(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, quotas := inTime(t), w.Quotas()
		must[*api.Quota](t)(quotas.Put(ctx, "mail", api.QuotaSettings{ConcurrencyLimit: 1, PerKey: true}))
		uses := []api.QuotaUse{{Quota: "mail", Key: "acme"}}
		short := echo.Submission(flowfabric.Text("x"), flowfabric.SubmitOptions{Quotas: uses})
		long := echo.Submission(flowfabric.Text("x"), flowfabric.SubmitOptions{Policy: &flowfabric.Policy{Quotas: uses, SlotsWhileWaiting: "hold"}})
		first := must[flowfabric.SubmitResult](t)(w.Submit(ctx, short)).ID
		must[flowfabric.SubmitResult](t)(w.Submit(ctx, long))
		both := short
		both.Policy = long.Policy
		if _, err := w.Submit(ctx, both); flowfabric.CodeOf(err) != "invalid_argument" {
			t.Errorf("both = %v", err)
		}
		keyless := echo.Submission(flowfabric.Text("x"), flowfabric.SubmitOptions{Quotas: []api.QuotaUse{{Quota: "mail"}}})
		if _, err := w.Submit(ctx, keyless); flowfabric.CodeOf(err) != "invalid_policy" {
			t.Errorf("without its key = %v", err)
		}
		must[*api.Claimed](t)(w.Operate().Claim(ctx, first))
		quota := must[*api.Quota](t)(quotas.Get(ctx, "mail"))
		if diff := cmp.Diff([]api.QuotaKey{{Key: "acme", Slots: 1, Holders: []flowfabric.ID{first}}}, quota.Keys); diff != "" {
			t.Errorf("in use (-want +got):\n%s", diff)
		}
		if err := quotas.Delete(ctx, "mail"); flowfabric.CodeOf(err) != "quota_in_use" {
			t.Errorf("Delete = %v", err)
		}
		if err := quotas.Delete(ctx, "mail", ops.DeleteQuotaOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
}

func TestU101_a_namespace_has_default_quotas(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, w *world) {
		ctx, namespaces := inTime(t), w.Admin().Namespaces()
		settings := api.NamespaceSettings{DefaultQuotas: []api.QuotaUse{{Quota: "mail"}}}
		if _, err := namespaces.Put(ctx, "default", settings); flowfabric.CodeOf(err) != "invalid_argument" {
			t.Errorf("of a quota that is not there = %v", err)
		}
		must[*api.Quota](t)(w.Quotas().Put(ctx, "mail", api.QuotaSettings{RateLimit: 1}))
		made := must[*api.Namespace](t)(namespaces.Put(ctx, "default", settings))
		if diff := cmp.Diff(settings, made.NamespaceSettings); diff != "" {
			t.Errorf("settings (-want +got):\n%s", diff)
		}
	})
}
