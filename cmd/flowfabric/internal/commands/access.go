package commands

import (
	"context"
	"log/slog"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/host"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
)

// openMode decides whether callers need keys (U123, U124): not in dev and not while there are none, and then only on loopback.
func (i *instance) openMode(ctx context.Context, client flowfabric.Client) (bool, error) {
	loopback := i.onLoopback()
	if i.dev && loopback {
		return true, i.openMetrics()
	}
	locked, err := hasAdminKey(ctx, client)
	if err != nil || locked {
		return false, err
	}
	if loopback {
		i.log.Warn("there is no API key: everybody on this host may do everything", "create_one", "flowfabric api-keys create --role admin --name me")
		return true, i.openMetrics()
	}
	if !settings.Get[bool](i.values, "insecure-open") {
		return false, i.session.problems([]settings.Problem{i.values.Problem("listen",
			"reachable from outside but no API key exists. Create one: flowfabric api-keys create --store … --role admin; or pass --insecure-open")})
	}
	go remindHourly(ctx, i.log)
	return true, nil
}

// openMetrics refuses an address for metrics that others reach while nobody is asked for a key, unless that is wanted.
func (i *instance) openMetrics() error {
	address := settings.Get[string](i.values, "metrics-listen")
	if address == "" || host.IsLoopback(address) || settings.Get[bool](i.values, "metrics-open") || settings.Get[bool](i.values, "insecure-open") {
		return nil
	}
	return i.session.problems([]settings.Problem{i.values.Problem("metrics-listen",
		"reachable from outside but no API key exists. Create one: flowfabric api-keys create --store … --role admin; or pass --metrics-open")})
}

// remindHourly tells of a server that anybody may use, at start and every hour (U124).
func remindHourly(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		log.Warn("the server is open to everybody who reaches it (--insecure-open)")
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// installKey installs the admin key that the settings give, unless it is there (U125).
func (i *instance) installKey(ctx context.Context, client flowfabric.Client) error {
	secret := settings.Get[string](i.values, "bootstrap-admin-key")
	if secret == "" {
		return nil
	}
	key, err := client.Admin().APIKeys().Create(ctx,
		flowfabric.APIKeySettings{Name: "bootstrap", Roles: []string{"admin"}, Namespaces: []string{"*"}},
		flowfabric.CreateKeyOptions{Secret: secret})
	if err != nil {
		return i.session.problems([]settings.Problem{i.values.Problem("bootstrap-admin-key", err.Error())})
	}
	i.log.Info("the bootstrap key is there", "key_id", key.ID)
	return nil
}
