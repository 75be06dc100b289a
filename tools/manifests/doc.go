// Package manifests checks the files in deploy/ for Kubernetes and Compose against the types and the schema that these projects publish.
// It has tests only, and is in this module because the main one must not depend on either project.
package manifests
