// Argo CD's sign-in without the rest of its server: its own handlers of login, callback and logout and its own check of a
// session, over the ConfigMaps and Secrets of a file. GET /session answers with the claims of the session; POST /health, with an
// object as JSON, with the health that Argo CD computes of it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"log"
	"net/http"
	"sync"
	"time"

	"github.com/argoproj/argo-cd/v3/common"
	"github.com/argoproj/argo-cd/v3/server/logout"
	"github.com/argoproj/argo-cd/v3/util/cache"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/argo-cd/v3/util/oidc"
	"github.com/argoproj/argo-cd/v3/util/session"
	"github.com/argoproj/argo-cd/v3/util/settings"
	"github.com/argoproj/gitops-engine/pkg/health"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func main() {
	listen := flag.String("listen", "", "host:port")
	objects := flag.String("objects", "", "YAML `file` with the ConfigMaps and Secrets of namespace argocd")
	flag.Parse()
	handler, err := newHandler(*objects)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe(*listen, handler))
}

// newHandler serves the paths that Argo CD serves them under.
func newHandler(file string) (http.Handler, error) {
	api, err := readAPI(file)
	if err != nil {
		return nil, err
	}
	cluster, err := kubernetes.NewForConfig(&rest.Config{Host: "http://api", Transport: api})
	if err != nil {
		return nil, err
	}
	manager := settings.NewSettingsManager(context.Background(), cluster, namespace)
	argo, err := manager.GetSettings()
	if err != nil {
		return nil, err
	}
	client, err := oidc.NewClientApp(argo, "", nil, "/", cache.NewInMemoryCache(time.Hour))
	if err != nil {
		return nil, err
	}
	sessions := session.NewSessionManager(manager, nil, "", nil, &revokedTokens{ids: map[string]bool{}})
	mux := http.NewServeMux()
	mux.HandleFunc(common.LoginEndpoint, client.HandleLogin)
	mux.HandleFunc(common.CallbackEndpoint, client.HandleCallback)
	mux.Handle(common.LogoutEndpoint, logout.NewHandler(manager, sessions, "/", "/"))
	mux.Handle("/session", sessions.AuthMiddlewareFunc(false, argo.IsSSOConfigured(), client)(http.HandlerFunc(printClaims)))
	mux.Handle("/health", healthHandler{manager})
	return mux, nil
}

// healthHandler runs the scripts of argocd-cm as the application controller does.
type healthHandler struct{ manager *settings.SettingsManager }

func (h healthHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var object unstructured.Unstructured
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = object.UnmarshalJSON(body)
	}
	var computed *health.HealthStatus
	if err == nil {
		computed, err = h.compute(&object)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(computed); err != nil {
		log.Print(err)
	}
}

// compute answers nil where no script is for the kind.
func (h healthHandler) compute(object *unstructured.Unstructured) (*health.HealthStatus, error) {
	overrides, err := h.manager.GetResourceOverrides()
	if err != nil {
		return nil, err
	}
	return health.GetResourceHealth(object, lua.ResourceHealthOverrides(overrides))
}

// printClaims answers with what Argo CD's middleware found in the session, which its rules of access read.
func printClaims(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(r.Context().Value("claims")); err != nil {
		log.Print(err)
	}
}

// revokedTokens is the storage of sessions, in Argo CD in Redis.
type revokedTokens struct {
	lock sync.RWMutex
	ids  map[string]bool
}

func (*revokedTokens) Init(context.Context) {}

func (*revokedTokens) GetLoginAttempts() map[string]session.LoginAttempts { return nil }

func (*revokedTokens) SetLoginAttempts(map[string]session.LoginAttempts) error { return nil }

func (r *revokedTokens) RevokeToken(_ context.Context, id string, _ time.Duration) error {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.ids[id] = true
	return nil
}

func (r *revokedTokens) IsTokenRevoked(id string) bool {
	r.lock.RLock()
	defer r.lock.RUnlock()
	return r.ids[id]
}

func (r *revokedTokens) GetLockObject() *sync.RWMutex { return &r.lock }
