package commands

import (
	"context"
	"log/slog"
	"time"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/host"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/internal/server"
)

// openMode decides whether callers need keys (U123, U124). They do not in dev on loopback and with --insecure-open, until there is an
// admin key. Otherwise a server whose store has none does not start: a store that lost its last one must not become everybody's.
func (i *instance) openMode(ctx context.Context, client *flowfabric.Client) (bool, error) {
	locked, err := server.HasAdminKey(ctx, client)
	if err != nil || locked {
		return false, err
	}
	switch loopback := i.onLoopback(); {
	case i.dev && loopback || settings.Get[bool](i.values, "insecure-open"):
		return true, i.openMetrics()
	case loopback:
		return false, i.session.problems([]settings.Problem{i.values.Problem("store",
			"has no admin key, so nobody could administer the server. Create one: "+i.firstKey()+"; or pass --insecure-open to let everybody on this host do everything")})
	default:
		return false, i.session.problems([]settings.Problem{i.values.Problem("listen",
			"reachable from outside but no admin key exists. Create one: "+i.firstKey()+"; or pass --insecure-open")})
	}
}

// firstKey is the command that makes the first admin key. The address of a database is left out: it may have a password.
func (i *instance) firstKey() string {
	store := settings.Get[string](i.values, "store")
	if isPostgres(store) {
		store = "postgres://…"
	}
	return "flowfabric api-keys create --store " + shellWord(store) + " --role admin --name me"
}

// openMetrics refuses an address for metrics that others reach while nobody is asked for a key, unless that is wanted.
func (i *instance) openMetrics() error {
	address := settings.Get[string](i.values, "metrics-listen")
	if address == "" || host.IsLoopback(address) || settings.Get[bool](i.values, "metrics-open") || settings.Get[bool](i.values, "insecure-open") {
		return nil
	}
	return i.session.problems([]settings.Problem{i.values.Problem("metrics-listen",
		"reachable from outside but no admin key exists. Create one: "+i.firstKey()+"; or pass --metrics-open")})
}

// remindHourly tells of a server that anybody may use, at start and every hour while it is open (U124).
func remindHourly(ctx context.Context, log *slog.Logger, open func() bool) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for open() {
		log.Warn("the server is open to everybody who reaches it (--insecure-open)",
			"create_one", "flowfabric api-keys create --role admin --name me")
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// installKey installs the admin key that the settings give, unless it is there (U125).
func (i *instance) installKey(ctx context.Context, client *flowfabric.Client) error {
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
