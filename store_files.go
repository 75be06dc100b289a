package flowfabric

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// storeFile is the file of a store; "" when it is none, or not in a place where others could look.
func storeFile(address string) string {
	path, isFile := strings.CutPrefix(address, "sqlite:")
	if !isFile || runtime.GOOS == "windows" { // where modes say nothing
		return ""
	}
	return path
}

// byOthers are the modes by which users reach a file that neither own it nor are of its group.
const byOthers fs.FileMode = 0o007

// checkFiles is what the doctor says of the files of the store; nothing when it has none.
func (e *embedded) checkFiles() []Check {
	if e.file == "" {
		return nil
	}
	return []Check{checkFiles(e.file)}
}

// checkFiles looks whether others can read or write the files of a store: inputs, results and, without a master key, signing secrets are in
// them as they are. In a directory that others cannot enter the modes of files do not matter.
func checkFiles(path string) Check {
	check := Check{Name: "files", State: CheckOK, Detail: "only the owner and its group reach the files of the store"}
	if dir, err := os.Stat(filepath.Dir(path)); err == nil && dir.Mode()&byOthers == 0 {
		return check
	}
	var open []string
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		if info, err := os.Stat(path + suffix); err == nil && info.Mode()&byOthers != 0 { // what is not there nobody reads
			open = append(open, filepath.Base(path)+suffix)
		}
	}
	if len(open) > 0 {
		check.State = CheckWarn
		check.Detail = "every user of this host can read or write " + strings.Join(open, ", ")
		check.Hint = "chmod 600 the files of the store, and its copies"
	}
	return check
}
