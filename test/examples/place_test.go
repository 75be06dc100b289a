package examples

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/embedded"
	chat "github.com/flowfabric/flowfabric/examples/chat/story"
	crash "github.com/flowfabric/flowfabric/examples/crash/story"
	"github.com/flowfabric/flowfabric/examples/stage"
	"github.com/flowfabric/flowfabric/flowfabrichttp"
	"github.com/flowfabric/flowfabric/internal/binary"
	"github.com/flowfabric/flowfabric/internal/engine"
	"github.com/flowfabric/flowfabric/internal/pgtest/migrated"
)

// cluster is the Postgres of these tests; its databases are migrated.
var cluster = migrated.New()

// TestMain lets this program be the second process of a story.
func TestMain(m *testing.M) {
	if os.Getenv(stage.PartVariable) == "" {
		goleak.VerifyTestMain(tidy{cluster.Around(m)})
		return
	}
	told, _ := strings.CutSuffix(os.Getenv(stage.PartVariable), "-told")
	story := map[string]stage.Story{"crash": crash.Crash, "chat": chat.Chat, "live-page": livePage()}[told]
	if err := stage.Run(careless(context.Background()), story, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// tidy removes what the tests have built.
type tidy struct{ tests interface{ Run() int } }

// Run runs the tests.
func (t tidy) Run() int {
	defer func() { _ = os.RemoveAll(built()) }()
	return t.tests.Run()
}

// built is the directory of what the tests build.
func built() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("flowfabric-examples-%d", os.Getpid()))
}

// careless lets the engine run on the databases of tests, which do not survive a loss of power.
func careless(ctx context.Context) context.Context {
	return engine.WithHooks(ctx, engine.Hooks{UnsafeDurability: true})
}

// place is where a story is printed, and where its facts are then looked up.
type place struct{ stage.Stage }

// open is a client that sees a namespace of the place.
func (p *place) open(t *testing.T, namespace string) *flowfabric.Client {
	t.Helper()
	ctx := careless(t.Context())
	var (
		c   *flowfabric.Client
		err error
	)
	if p.Server != "" {
		c, err = flowfabric.Connect(p.Server, flowfabric.ConnectConfig{APIKey: p.Key, Namespace: namespace})
	} else {
		c, err = embedded.Open(ctx, p.Store, embedded.Config{EngineConfig: flowfabric.EngineConfig{Namespace: namespace, Logger: slog.New(slog.DiscardHandler)}})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(ctx)) })
	return c
}

func sqliteStore(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "app.db") }

// everywhere tells a story on every store and through a server, and lets check look at the facts.
func everywhere(t *testing.T, story stage.Story, check func(t *testing.T, p *place)) {
	t.Helper()
	on(t, story, "sqlite", func(t *testing.T) stage.Stage { return stage.Stage{Store: sqliteStore(t)} }, check)
	on(t, story, "postgres", func(t *testing.T) stage.Stage { return stage.Stage{Store: cluster.Database(t)} }, check)
	on(t, story, "server", func(t *testing.T) stage.Stage { return serve(t, sqliteStore(t), "default") }, check)
}

// on tells a story in one place.
func on(t *testing.T, story stage.Story, name string, set func(t *testing.T) stage.Stage, check func(t *testing.T, p *place)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		s := set(t)
		s.Name, s.Self, s.Out = story.Name+"-told", []string{os.Args[0]}, io.Discard
		if err := stage.Play(careless(t.Context()), story, s); err != nil {
			t.Fatal(err)
		}
		check(t, &place{s})
	})
}

// serve runs a server that asks for keys, below a prefix, and gives a key with all roles in a namespace.
func serve(t *testing.T, store, namespace string) stage.Stage {
	t.Helper()
	ctx := careless(t.Context())
	client, err := embedded.Open(ctx, store, embedded.Config{EngineConfig: flowfabric.EngineConfig{
		Logger: slog.New(slog.DiscardHandler), Webhooks: api.WebhookTargets{AllowLoopback: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(context.WithoutCancel(ctx)) })
	key, err := client.Admin().APIKeys().Create(ctx, api.APIKeySettings{
		Name: "teller", Roles: []string{"read", "submit", "work", "operate", "admin"}, Namespaces: []string{namespace},
	})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := flowfabrichttp.New(client, flowfabrichttp.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	address, stop, err := stage.Serve(ctx, http.StripPrefix("/fabric", handler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return stage.Stage{Server: address + "/fabric", Key: key.Secret}
}

// program is the flowfabric program, built once.
var program = sync.OnceValues(func() (string, error) { return binary.In(built()) })
