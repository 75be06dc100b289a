package manifests

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// kinds makes an empty object of each kind that the manifests use.
func kinds() map[string]func() any {
	return map[string]func() any{
		"v1 Service":                    func() any { return new(corev1.Service) },
		"apps/v1 Deployment":            func() any { return new(appsv1.Deployment) },
		"apps/v1 StatefulSet":           func() any { return new(appsv1.StatefulSet) },
		"policy/v1 PodDisruptionBudget": func() any { return new(policyv1.PodDisruptionBudget) },
	}
}

// objects reads the documents of a manifest; a field that the type does not have, or that has another type, fails the test.
func objects(t *testing.T, path string) []any {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []any
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		object, err := decode(document)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, object)
	}
	return all
}

func decode(document []byte) (any, error) {
	var header struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(document, &header); err != nil {
		return nil, err
	}
	of, known := kinds()[header.APIVersion+" "+header.Kind]
	if !known {
		return nil, os.ErrInvalid
	}
	object := of()
	return object, yaml.UnmarshalStrict(document, object)
}

func manifests(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../../deploy/kubernetes/*.yaml")
	if err != nil || len(paths) < 2 {
		t.Fatalf("manifests: %q %v", paths, err)
	}
	return paths
}

func TestTheManifestsOfKubernetesFitItsTypesAndEachOther(t *testing.T) {
	t.Parallel()
	for _, path := range manifests(t) {
		var service *corev1.Service
		var pods []corev1.PodTemplateSpec
		var claims []corev1.PersistentVolumeClaim
		for _, object := range objects(t, path) {
			switch object := object.(type) {
			case *corev1.Service:
				service = object
			case *appsv1.Deployment:
				pods = append(pods, object.Spec.Template)
				selects(t, path, object.Spec.Selector.MatchLabels, object.Spec.Template)
			case *appsv1.StatefulSet:
				pods, claims = append(pods, object.Spec.Template), object.Spec.VolumeClaimTemplates
				selects(t, path, object.Spec.Selector.MatchLabels, object.Spec.Template)
				if *object.Spec.Replicas != 1 {
					t.Errorf("%s: %d servers on one SQLite file", path, *object.Spec.Replicas)
				}
			}
		}
		if service == nil || len(pods) != 1 {
			t.Fatalf("%s: no service, or not one set of pods", path)
		}
		selects(t, path, service.Spec.Selector, pods[0])
		checkPod(t, path, pods[0].Spec, claims, service.Spec.Ports[0].TargetPort.StrVal)
	}
}

// selects checks that labels select the pods.
func selects(t *testing.T, path string, labels map[string]string, pods corev1.PodTemplateSpec) {
	t.Helper()
	if len(labels) == 0 || !maps.Equal(labels, pods.Labels) {
		t.Errorf("%s: %v selects no pods with the labels %v", path, labels, pods.Labels)
	}
}

// checkPod checks that what the pod refers to exists, and that it runs without privileges.
func checkPod(t *testing.T, path string, pod corev1.PodSpec, claims []corev1.PersistentVolumeClaim, port string) {
	t.Helper()
	server := pod.Containers[0]
	var ports, volumes []string
	for _, p := range server.Ports {
		ports = append(ports, p.Name)
	}
	for _, v := range pod.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, c := range claims {
		volumes = append(volumes, c.Name)
	}
	for _, probe := range []*corev1.Probe{server.StartupProbe, server.ReadinessProbe, server.LivenessProbe} {
		if probe == nil || !slices.Contains(ports, probe.HTTPGet.Port.StrVal) || probe.HTTPGet.Path != "/readyz" && probe.HTTPGet.Path != "/healthz" {
			t.Errorf("%s: probe %+v", path, probe)
		}
	}
	if !slices.Contains(ports, port) {
		t.Errorf("%s: the service sends to port %q, the container has %q", path, port, ports)
	}
	for _, mount := range server.VolumeMounts {
		if !slices.Contains(volumes, mount.Name) {
			t.Errorf("%s: the volume %s does not exist", path, mount.Name)
		}
	}
	for _, v := range server.Env {
		knownVariable(t, path, v.Name)
	}
	if pod.SecurityContext.RunAsNonRoot == nil || !*pod.SecurityContext.RunAsNonRoot || *server.SecurityContext.AllowPrivilegeEscalation || !*server.SecurityContext.ReadOnlyRootFilesystem {
		t.Errorf("%s: the pod has privileges", path)
	}
}

// knownVariable checks that the settings page lists a variable.
func knownVariable(t *testing.T, path, name string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "`"+strings.TrimSuffix(name, "_FILE")+"`") && !strings.Contains(string(page), "`"+name+"`") {
		t.Errorf("%s sets %s, which is no setting", path, name)
	}
}

func TestAManifestWithAMisspeltFieldIsFound(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"apiVersion: apps/v1\nkind: Deployment\nspec: {replica: 2}",
		"apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: two}",
		"apiVersion: apps/v2\nkind: Deployment",
	} {
		if _, err := decode([]byte(text)); err == nil {
			t.Errorf("accepted: %s", text)
		}
	}
}
