package flowfabric

import (
	"log/slog"
	"time"

	"github.com/flowfabric/flowfabric/api"
)

// EngineConfig sets up an engine in this process, whatever its store is: see sqlite.Open, postgres.Open and embedded.Open. The zero
// value is useful.
type EngineConfig struct {
	Namespace string       // default "default"; the client sees nothing else
	Principal string       // default "local", with all roles; stands in events
	NoEngine  bool         // submit and read only; another process turns the timers
	Logger    *slog.Logger // default slog.Default()
	Tracer    Tracer       // nil: no spans; package flowfabricotel makes one from OpenTelemetry
	// PublicURL is where a server on the same store is reached by people and callbacks: absolute, http or https, without query. It
	// stands before the addresses of links and callbacks; "": these are paths.
	PublicURL string

	Migrate          api.MigrateMode // what to do with an older schema; default: bring it up to date
	UnsafeDurability bool            // accept a database that may lose acknowledged commits when the power fails
	MaxPayload       int             // bytes of an input or result, up to 64 MiB; default 4 MiB
	QueueLimit       int             // commands that may wait for a commit; default 8192
	BatchLimit       int             // commands a commit; default 1000
	MaxClaims        int             // claims that may wait at a time; default 10 000
	PollInterval     time.Duration   // safety-net look at store and timers; default 1 s
	LeaseTTL         time.Duration   // of a claim that names none; default 30 s
	Retention        Retention       // of finished executions that neither policy nor lane says more about
	EventRetention   time.Duration   // default 7 days; KeepForever: no end
	AuditRetention   time.Duration   // default 9600 hours; KeepForever: no end
	KeyGrace         time.Duration   // how long the old secret of a rotated API key, or the old signing key, works on unless the call says otherwise; default a day, up to 30
	MasterKey        string          // seals the secrets in the store: 32 bytes as hexadecimal digits or base64; default none, they are stored in clear
	SigningKid       string          // name of the first signing key; default a random key where there is none
	SigningSecret    string          // its secret: 64 hexadecimal digits; goes with SigningKid
}
