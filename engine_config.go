package flowfabric

import (
	"log/slog"
	"time"

	"github.com/flowfabric/flowfabric/api"
)

// EngineConfig configures an engine in this process, with any store: see sqlite.Open, postgres.Open and embedded.Open. The zero
// value is ready to use.
type EngineConfig struct {
	Namespace string       // default "default"; the client is restricted to it
	Principal string       // default "local", with all roles; recorded in events
	NoEngine  bool         // submit and read only; the timers run in another process
	Logger    *slog.Logger // default slog.Default()
	Tracer    Tracer       // nil: no spans; package flowfabricotel makes one from OpenTelemetry
	// PublicURL is the address at which people and callbacks reach a server on the same store: absolute, http or https, without a
	// query. It prefixes the addresses of links and callbacks; "": these are paths.
	PublicURL string

	// Webhooks states which addresses outgoing webhooks may reach; default: https to public addresses on port 443.
	Webhooks api.WebhookTargets

	Migrate          api.MigrateMode // how to handle an older schema; default: migrate it
	UnsafeDurability bool            // accept a database that may lose acknowledged commits on a power failure
	MaxPayload       int             // bytes of an input or result, up to 64 MiB; default 4 MiB
	QueueLimit       int             // maximum number of commands that wait for a commit; default 8192
	BatchLimit       int             // maximum number of commands per commit; default 1000
	MaxClaims        int             // maximum number of waiting claims; default 10 000
	PollInterval     time.Duration   // interval of the fallback poll of store and timers; default 1 s
	LeaseTTL         time.Duration   // of a claim that sets none; default 30 s
	Retention        Retention       // of finished executions, unless their policy or lane sets one
	EventRetention   time.Duration   // default 7 days; KeepForever: without limit
	AuditRetention   time.Duration   // default 9600 hours; KeepForever: without limit
	KeyGrace         time.Duration   // how long the old secret of a rotated API key, or the old signing key, stays valid unless the call sets it; default one day, up to 30
	MasterKey        string          // seals the secrets in the store: 32 bytes as hexadecimal digits or base64; default none, they are stored in clear
	SigningKid       string          // name of the first signing key; default: a random key if there is none
	SigningSecret    string          // its secret: 64 hexadecimal digits; requires SigningKid
}
