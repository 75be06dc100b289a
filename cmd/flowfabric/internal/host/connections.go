package host

import "runtime/debug"

// Default bounds for the connections of one address.
const (
	mostConnections  = 4096
	leastConnections = 16
	// connectionMemory is what a connection takes at most before its first request has come: with TLS and HTTP/2 and a large head. The connections
	// of one address take at most one part of memoryParts of what the process may have.
	connectionMemory = 160 << 10
	memoryParts      = 4
)

// ConnectionsPerAddress is the default limit of connections per address: at most half of the files that the process may open, and a
// quarter of its memory, so that other clients can connect.
func ConnectionsPerAddress() int {
	return connectionsWithin(openFiles(), debug.SetMemoryLimit(-1))
}

// connectionsWithin is the limit with so many files, 0 if unknown, and with so much memory.
func connectionsWithin(files uint64, memory int64) int {
	most := min(mostConnections, memory/memoryParts/connectionMemory)
	if files > 0 {
		most = int64(min(uint64(most), files/2))
	}
	return int(max(leastConnections, most))
}
