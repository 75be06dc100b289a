package commands

import (
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/embedded"
)

func TestU181_the_settings_of_the_engine_reach_it(t *testing.T) {
	t.Parallel()
	values, problems := settings.Load(settings.Server(), settings.Sources{Flags: map[string]string{
		"store": "postgres://me@db/ff", "store-schema": "work", "store-direct-url": "postgres://me@direct/ff", "store-pool": "3", "store-timeout": "7s", "unsafe-durability": "true",
		"migrate": "check", "max-payload": "1MiB", "max-claims": "11", "queue-limit": "12", "batch-limit": "13", "poll-interval": "2s", "lease-ttl": "45s",
		"retention": "succeeded=1h,failed=-1", "event-retention": "2h", "audit-retention": "3h", "key-grace": "4h",
		"webhook-allow-http": "true", "webhook-allow-cidr": "10.0.0.0/8", "webhook-ports": "8443",
	}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := embedded.Config{
		EngineConfig: flowfabric.EngineConfig{
			UnsafeDurability: true,
			Migrate:          api.MigrateCheck,
			MaxPayload:       1 << 20,
			MaxClaims:        11,
			QueueLimit:       12,
			BatchLimit:       13,
			PollInterval:     2 * time.Second,
			LeaseTTL:         45 * time.Second,
			Retention:        flowfabric.Retention{Succeeded: time.Hour, Failed: flowfabric.KeepForever},
			EventRetention:   2 * time.Hour,
			AuditRetention:   3 * time.Hour,
			KeyGrace:         4 * time.Hour,
			Webhooks:         api.WebhookTargets{AllowHTTP: true, AllowRanges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Ports: []int{8443}},
		},
		Schema:    "work",
		DirectURL: "postgres://me@direct/ff",
		PoolSize:  3,
		Timeout:   7 * time.Second,
	}
	got := openConfig(values, slog.New(slog.DiscardHandler))
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(embedded.Config{}, "Logger", "Tracer"), cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestU123_what_others_may_reach_is_known_by_its_address(t *testing.T) {
	t.Parallel()
	for address, exposed := range map[string]bool{"127.0.0.1:7433": false, "0.0.0.0:7433": true} {
		values, problems := settings.Load(settings.Server(), settings.Sources{Flags: map[string]string{"listen": address, "insecure-open": "true", "metrics-open": "true", "metrics-listen": "127.0.0.1:0"}})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		i := &instance{session: &session{App: &App{}}, values: values}
		if cfg := i.serverConfig(true, "http://"+address); cfg.Exposed != exposed || cfg.MetricsOpen {
			t.Errorf("%s: %+v", address, cfg)
		}
		if cfg := i.serverConfig(false, "http://"+address); cfg.Exposed {
			t.Errorf("%s: a server that asks for keys is not exposed", address)
		}
	}
}
