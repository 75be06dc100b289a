package sqlite

import (
	"os"

	"golang.org/x/sys/windows"
)

// namesOf returns the number of names of a file; 0 if unknown.
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
