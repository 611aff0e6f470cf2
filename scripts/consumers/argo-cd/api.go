package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

const namespace = "argocd"

// An api is an API server, as a transport, whose objects never change. The one in client-go's memory would take twice as long
// to compile as the client itself.
type api struct{ objects []object }

type object struct {
	metav1.PartialObjectMetadata
	json json.RawMessage
}

// readAPI reads the objects of the namespace; the documents of the file are separated by lines of `---`.
func readAPI(file string) (*api, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	served := &api{}
	for _, document := range strings.Split(string(text), "\n---\n") {
		var one object
		if one.json, err = yaml.YAMLToJSON([]byte(document)); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(one.json, &one.PartialObjectMetadata); err != nil {
			return nil, err
		}
		served.objects = append(served.objects, one)
	}
	return served, nil
}

// RoundTrip answers a list of ConfigMaps or Secrets, and a watch until it is given up.
func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	response := &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Request:    r,
	}
	query := r.URL.Query()
	kind, known := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret"}[path.Base(r.URL.Path)]
	if !known || r.Method != http.MethodGet {
		return nil, fmt.Errorf("not served: %s %s", r.Method, r.URL)
	}
	if query.Get("watch") != "" {
		reader, writer := io.Pipe()
		go func() {
			<-r.Context().Done()
			writer.Close()
		}()
		response.Body = reader
		return response, nil
	}
	selector, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	items := []json.RawMessage{}
	for _, one := range a.objects {
		if one.Kind == kind && one.Namespace == namespace && selector.Matches(labels.Set(one.Labels)) {
			items = append(items, one.json)
		}
	}
	list := map[string]any{
		"apiVersion": "v1",
		"kind":       kind + "List",
		"metadata":   map[string]string{"resourceVersion": "1"},
		"items":      items,
	}
	body, err := json.Marshal(list)
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, err
}
