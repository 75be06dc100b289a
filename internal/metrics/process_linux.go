package metrics

import (
	"bytes"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ticks is the kernel's time unit: ticks per second.
const ticks = 100

// Indexes of fields in /proc/self/stat, counted after the name of the program, which may contain blanks.
const (
	statUser      = 11
	statSystem    = 12
	statStarted   = 19
	statVirtual   = 20 // bytes
	statResident  = 21 // pages
	statFieldsLen = 22
)

// Collect reads /proc.
func (process) Collect() []Family {
	return slices.Concat(processStat(), descriptors(), limit(maxFDs, syscall.RLIMIT_NOFILE), limit(maxVirtual, syscall.RLIMIT_AS), network())
}

// processStat returns time and memory.
func processStat() []Family {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return nil
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < statFieldsLen {
		return nil
	}
	all := []Family{
		processCPU.Reading((figure(fields[statUser]) + figure(fields[statSystem])) / ticks),
		virtual.Reading(figure(fields[statVirtual])),
		resident.Reading(figure(fields[statResident]) * float64(os.Getpagesize())),
	}
	if booted, known := bootTime(); known {
		all = append(all, startTime.Reading(booted+figure(fields[statStarted])/ticks))
	}
	return all
}

// bootTime is when the machine was started, in seconds since 1970.
func bootTime() (seconds float64, known bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, false
	}
	_, after, known := strings.Cut(string(text), "\nbtime ")
	first, _, _ := strings.Cut(after, "\n")
	return figure(first), known
}

// descriptors counts open files.
func descriptors() []Family {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	return []Family{openFDs.Reading(float64(len(names) - 1))} // without the one opened for counting
}

// limit returns a resource limit; unlimited is the highest number.
func limit(of Metric, resource int) []Family {
	var found syscall.Rlimit
	if syscall.Getrlimit(resource, &found) != nil {
		return nil
	}
	return []Family{of.Reading(float64(found.Cur))}
}

// network returns network traffic of the process's network namespace.
func network() []Family {
	text, err := os.ReadFile("/proc/self/net/netstat")
	if err != nil {
		return nil
	}
	// Two lines with the same first word form a pair of names and values.
	var names []string
	octets := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		values := strings.Fields(line)
		if len(values) > 0 && len(names) == len(values) && names[0] == values[0] {
			for i, name := range names {
				octets[name] = figure(values[i])
			}
		}
		names = values
	}
	return []Family{received.Reading(octets["InOctets"]), sent.Reading(octets["OutOctets"])}
}

// figure parses a number of the kernel; NaN if missing.
func figure(text string) float64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return math.NaN()
	}
	return n
}
