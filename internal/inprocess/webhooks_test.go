package inprocess

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
)

func TestU197_targets_of_webhooks_are_checked_and_shown_as_settings(t *testing.T) {
	t.Parallel()
	for field, bad := range map[string]api.WebhookTargets{
		"Webhooks.Ports[1]":       {Ports: []int{443, 0}},
		"Webhooks.Ports[0]":       {Ports: []int{65536}},
		"Webhooks.AllowRanges[0]": {AllowRanges: []netip.Prefix{{}}},
		"Webhooks.AllowRanges[1]": {AllowRanges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::ffff:10.0.0.0/104")}},
	} {
		_, err := webhookAddresses(bad)
		if refusal, ok := err.(*base.Error); !ok || refusal.Code != base.CodeInvalidArgument || refusal.Field != field { //nolint:errorlint // it is returned bare
			t.Errorf("%+v: %v, want invalid_argument of %s", bad, err, field)
		}
	}
	lan := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/32")}
	targets := api.WebhookTargets{AllowHTTP: true, AllowLoopback: true, AllowRanges: lan, Ports: []int{8443, 443}}
	got, err := webhookAddresses(targets)
	if want := (webhook.Addresses{AllowHTTP: true, AllowLoopback: true, Allow: lan, Ports: []int{8443, 443}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for want, targets := range map[string]api.WebhookTargets{"false default  default 443 default": {}, "true program 10.1.0.0/16,fd00:1::/32 program 443,8443 program": targets} {
		text := ""
		for _, one := range webhookSettings(targets) {
			value, _ := one.Value.(string)
			text += " " + value + " " + one.Source
		}
		if text[1:] != want {
			t.Errorf("the settings are %q, want %q", text[1:], want)
		}
	}
}
