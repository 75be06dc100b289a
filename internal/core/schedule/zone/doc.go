// Package zone holds the time zones that are compiled into the program: their names, and at which instants their clocks change.
//
// A host's own zone files and its local zone are never read, so that all processes of a store agree. The archive zoneinfo.zip is the file
// lib/time/zoneinfo.zip of the Go distribution, unchanged; it holds release 2025c of the IANA database, which is in the public domain. A newer
// distribution's file replaces it as it is.
//
// Instants are whole seconds since the Unix epoch. A reading is what the clocks of a zone show, as the seconds from 1970-01-01T00:00:00 on the same
// clocks: reading = instant + offset. The package knows nothing of schedules.
package zone
