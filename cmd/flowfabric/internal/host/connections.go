package host

import "runtime/debug"

// Default bounds for the connections of one address.
const (
	mostConnections  = 4096
	leastConnections = 16
	// What a connection takes at most before its first request has come: with TLS and HTTP/2 also a large head, which is counted elsewhere over
	// HTTP/1.1. The connections of one address take at most one part of memoryParts of what the process may have.
	secureMemory = 160 << 10
	plainMemory  = 32 << 10
	memoryParts  = 4
)

// ConnectionsPerAddress is the default limit of connections per address: at most half of the files that the process may open, and a
// quarter of its memory, so that other clients can connect.
func ConnectionsPerAddress(secure bool) int {
	return connectionsWithin(openFiles(), debug.SetMemoryLimit(-1), secure)
}

// connectionsWithin is the limit with so many files, 0 if unknown, and with so much memory.
func connectionsWithin(files uint64, memory int64, secure bool) int {
	each := int64(plainMemory)
	if secure {
		each = secureMemory
	}
	most := min(mostConnections, memory/memoryParts/each)
	if files > 0 {
		most = int64(min(uint64(most), files/2))
	}
	return int(max(leastConnections, most))
}
