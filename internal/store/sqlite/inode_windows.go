package sqlite

import (
	"os"

	"golang.org/x/sys/windows"
)

// namesOf counts the names that a file has; 0: it cannot be told.
func namesOf(path string) uint64 {
	file, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }()
	var found windows.ByHandleFileInformation
	if windows.GetFileInformationByHandle(windows.Handle(file.Fd()), &found) != nil {
		return 0
	}
	return uint64(found.NumberOfLinks)
}
