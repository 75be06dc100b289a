package host

// The bounds of what one address may have open by default.
const (
	mostConnections  = 4096
	leastConnections = 16
)

// ConnectionsPerAddress is how many connections one address may have open unless the settings say so: not more than half of the files that
// the process may open, so that others get in.
func ConnectionsPerAddress() int {
	files := openFiles()
	if files == 0 {
		return mostConnections
	}
	return int(max(leastConnections, min(mostConnections, files/2)))
}
