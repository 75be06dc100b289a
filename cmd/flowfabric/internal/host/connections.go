package host

// Default bounds for the connections of one address.
const (
	mostConnections  = 4096
	leastConnections = 16
)

// ConnectionsPerAddress is the default limit of connections per address: at most half of the files that the process may open, so
// that other clients can connect.
func ConnectionsPerAddress() int {
	files := openFiles()
	if files == 0 {
		return mostConnections
	}
	return int(max(leastConnections, min(mostConnections, files/2)))
}
