package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/sqlite"
)

// ChargeCard charges a card for an order, which is its input.
const ChargeCard flowfabric.Kind[string, string] = "charge"

// store is the path of a new file, and how to remove it.
func store() (path string, remove func()) {
	dir, err := os.MkdirTemp("", "flowfabric")
	if err != nil {
		panic(err)
	}
	return filepath.Join(dir, "app.db"), func() { _ = os.RemoveAll(dir) }
}

// The order row and the work for it come into being together, or not at all.
func ExampleSubmitSQLTx() {
	ctx := context.Background()
	path, remove := store()
	defer remove()
	client, err := sqlite.Open(ctx, path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close(ctx) }()
	db, err := sql.Open("sqlite", path+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()

	place := func(order string, pay bool) (flowfabric.ID, error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return "", err
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(ctx, "create table if not exists orders (number text)"); err != nil {
			return "", err
		}
		if _, err := tx.ExecContext(ctx, "insert into orders values (?)", order); err != nil {
			return "", err
		}
		x, err := sqlite.SubmitSQLTx(ctx, client, tx, ChargeCard.Submission(order))
		if err != nil || !pay {
			return x.ID, err // rolled back
		}
		return x.ID, tx.Commit() // and the work can start
	}
	for _, pay := range []bool{true, false} {
		id, err := place("o-17", pay)
		if err != nil {
			fmt.Println(err)
			return
		}
		x, err := client.Get(ctx, id)
		if err != nil {
			fmt.Println(flowfabric.CodeOf(err))
			continue
		}
		fmt.Println(x.Kind, x.Status)
	}
	// Output:
	// charge ready
	// execution_not_found
}
