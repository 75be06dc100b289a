package commands

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/host"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/settings"
	"github.com/flowfabric/flowfabric/internal/service"
)

// openMode reports whether callers need no keys (U123, U124): in dev on loopback and with --insecure-open, until an admin key
// exists. Otherwise a server whose store has no admin key does not start, because a store that lost its last one must not become
// open to everyone.
func (i *instance) openMode(ctx context.Context, on service.Backend) (bool, error) {
	locked, err := on.HasAdminKey(ctx)
	if err != nil || locked {
		return false, err
	}
	switch loopback := i.onLoopback(); {
	case i.dev && loopback || settings.Get[bool](i.values, "insecure-open"):
		return true, i.openMetrics()
	case loopback:
		return false, i.session.problems([]settings.Problem{i.values.Problem("store",
			"has no admin key, so the server could not be administered. Create one: "+i.firstKey()+"; or pass --insecure-open to allow every caller on this host to do everything")})
	default:
		return false, i.session.problems([]settings.Problem{i.values.Problem("listen",
			"reachable from other hosts, and no admin key exists. Create one: "+i.firstKey()+"; or pass --insecure-open")})
	}
}

// firstKey returns the command that creates the first admin key. The address of a database is left out because it may contain a
// password.
func (i *instance) firstKey() string {
	store := settings.Get[string](i.values, "store")
	if isPostgres(store) {
		store = "postgres://…"
	}
	return "flowfabric api-keys create --store " + shellWord(store) + " --role admin --name me"
}

// openMetrics refuses a metrics address that other hosts can reach without a key, unless --metrics-open is given.
func (i *instance) openMetrics() error {
	address := settings.Get[string](i.values, "metrics-listen")
	if address == "" || host.IsLoopback(address) || settings.Get[bool](i.values, "metrics-open") || settings.Get[bool](i.values, "insecure-open") {
		return nil
	}
	return i.session.problems([]settings.Problem{i.values.Problem("metrics-listen",
		"reachable from other hosts, and no admin key exists. Create one: "+i.firstKey()+"; or pass --metrics-open")})
}

// remindHourly logs at start and then hourly that the server is open (U124).
func remindHourly(ctx context.Context, log *slog.Logger, open func() bool) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for open() {
		log.Warn("the server is open to every caller that can reach it (--insecure-open)",
			"create_one", "flowfabric api-keys create --role admin --name me")
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// installKey installs the admin key from the settings, unless it exists (U125).
func (i *instance) installKey(ctx context.Context, client *flowfabric.Client) error {
	secret := settings.Get[string](i.values, "bootstrap-admin-key")
	if secret == "" {
		return nil
	}
	key, err := client.Admin().APIKeys().Create(ctx,
		api.APIKeySettings{Name: "bootstrap", Roles: []string{"admin"}, Namespaces: []string{"*"}},
		ops.CreateKeyOptions{Secret: secret})
	if err != nil {
		return i.session.problems([]settings.Problem{i.values.Problem("bootstrap-admin-key", err.Error())})
	}
	i.log.Info("the bootstrap key is installed", "key_id", key.ID)
	return nil
}

// shellWord quotes a text for a shell if needed.
func shellWord(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,", r)
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
