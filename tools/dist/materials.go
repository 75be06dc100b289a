package main

import (
	"bytes"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// materials writes the bill of materials of a program, in CycloneDX: every module that is compiled in, and the standard library.
func (b *builder) materials(p platform, program file, of built) error {
	var text bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(billOf(p, program, of), cyclonedx.SpecVersion1_6); err != nil {
		return err
	}
	return publish(b.name(p, ".cdx.json"), text.Bytes())
}

func billOf(p platform, program file, of built) *cyclonedx.BOM {
	main := moduleComponent(cyclonedx.ComponentTypeApplication, debug.Module{Path: of.info.Main.Path, Version: of.version})
	main.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}
	main.Properties = &[]cyclonedx.Property{{Name: "vcs.revision", Value: of.commit}, {Name: "platform", Value: p.String()}}
	components := []cyclonedx.Component{
		moduleComponent(cyclonedx.ComponentTypeLibrary, debug.Module{Path: "stdlib", Version: strings.TrimPrefix(of.info.GoVersion, "go")}),
	}
	for _, dep := range of.info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		components = append(components, moduleComponent(cyclonedx.ComponentTypeLibrary, *dep))
	}
	needs := make([]string, len(components))
	for i, c := range components {
		needs[i] = c.BOMRef
	}
	bill := cyclonedx.NewBOM()
	// The same program has the same serial number: it is derived from its bytes.
	bill.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, program.data).URN()
	bill.Metadata = &cyclonedx.Metadata{Timestamp: of.date.UTC().Format(time.RFC3339), Component: &main}
	bill.Components = &components
	bill.Dependencies = &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &needs}}
	return bill
}

func moduleComponent(kind cyclonedx.ComponentType, m debug.Module) cyclonedx.Component {
	url := fmt.Sprintf("pkg:golang/%s@%s", m.Path, m.Version)
	c := cyclonedx.Component{Type: kind, Name: m.Path, Version: m.Version, PackageURL: url, BOMRef: url}
	if m.Sum != "" { // as in go.sum: a hash over the names and hashes of the files, not of one file
		c.Properties = &[]cyclonedx.Property{{Name: "go.sum", Value: m.Sum}}
	}
	return c
}
