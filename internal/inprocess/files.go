package inprocess

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/flowfabric/flowfabric/api"
)

// byOthers are the mode bits that give access to users who neither own a file nor are in its group.
const byOthers fs.FileMode = 0o007

// FileChecks returns the checks of the doctor on the files of a store, on systems where file modes apply.
func FileChecks(path string) func() []api.Check {
	if runtime.GOOS == "windows" {
		return nil
	}
	return func() []api.Check { return []api.Check{checkFiles(path)} }
}

// checkFiles checks whether other users can read or write the files of a store: they contain inputs, results and, without a
// master key, signing secrets in clear. In a directory that others cannot enter the modes of files do not matter.
func checkFiles(path string) api.Check {
	check := api.Check{Name: "files", State: api.CheckOK, Detail: "only the owner and its group reach the files of the store"}
	if dir, err := os.Stat(filepath.Dir(path)); err == nil && dir.Mode()&byOthers == 0 {
		return check
	}
	var open []string
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		if info, err := os.Stat(path + suffix); err == nil && info.Mode()&byOthers != 0 { // a missing file is no risk
			open = append(open, filepath.Base(path)+suffix)
		}
	}
	if len(open) > 0 {
		check.State = api.CheckWarn
		check.Detail = "every user of this host can read or write " + strings.Join(open, ", ")
		check.Hint = "chmod 600 the files of the store, and its copies"
	}
	return check
}
