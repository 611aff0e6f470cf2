{{/* The rules that no schema can express. Each sentence says what to set. */}}
{{- define "grantry.checks" -}}
{{- include "grantry.issuerChecks" .Values.issuer -}}
{{- include "grantry.nameChecks" . -}}
{{- include "grantry.redisChecks" . -}}
{{- include "grantry.accountChecks" . -}}
{{- if and .Values.webhook.existingSecret (not .Values.webhook.url) -}}
{{- fail "webhook.existingSecret is set, but webhook.url, where alerts are posted, is not" -}}
{{- end -}}
{{- if and .Values.users.initialUser .Values.users.existingSecret -}}
{{- fail "users.initialUser and users.existingSecret are both set, and the first user is for an install without users: leave users.initialUser empty" -}}
{{- end -}}
{{- with .Values.branding -}}
{{- if ne (empty .accentColor) (empty .accentColorDark) -}}
{{- fail "branding.accentColor and branding.accentColorDark need each other: no colour has the contrast in both schemes of browsers" -}}
{{- end -}}
{{- if ne (empty (.help).url) (empty (.help).text) -}}
{{- fail "branding.help.url and branding.help.text need each other" -}}
{{- end -}}
{{- end -}}
{{- with .Values.server -}}
{{- if and .autoscaling.enabled (not (kindIs "invalid" .replicas)) -}}
{{- fail "server.replicas and server.autoscaling.enabled are both set: set server.replicas=null and server.autoscaling.minReplicas, or server.autoscaling.enabled=false" -}}
{{- end -}}
{{- if and .autoscaling.enabled (gt (int .autoscaling.minReplicas) (int .autoscaling.maxReplicas)) -}}
{{- fail (printf "server.autoscaling.minReplicas is %d and server.autoscaling.maxReplicas %d: set server.autoscaling.maxReplicas to at least %[1]d" (int .autoscaling.minReplicas) (int .autoscaling.maxReplicas)) -}}
{{- end -}}
{{- $needed := include "grantry.seconds" $.Values.config.drainDelay | int | add 25 -}}
{{- if lt (int .terminationGracePeriodSeconds) (int $needed) -}}
{{- fail (printf "a server may take config.drainDelay and 25 s to end: set server.terminationGracePeriodSeconds to at least %d" $needed) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- fail "httpRoute.enabled is set, but httpRoute.parentRefs, the Gateways that the route is of, is not" -}}
{{- end -}}
{{- if eq (int .Values.config.port) (int .Values.config.adminPort) -}}
{{- fail "config.port and config.adminPort are the same: set them to two ports" -}}
{{- end -}}
{{- include "grantry.addressChecks" . -}}
{{- include "grantry.mtlsChecks" . -}}
{{- end -}}

{{/* The rules of the programs for an issuer, checked before anything is installed: only its plain spelling is accepted. */}}
{{- define "grantry.issuerChecks" -}}
{{- if not . -}}
{{- fail "issuer is not set: the address that clients know this server by, such as --set issuer=https://id.example.com" -}}
{{- end -}}
{{- if not (regexMatch "^https?://." .) -}}
{{- fail (printf "issuer is %q, which is not an https address: set issuer to one such as https://id.example.com" .) -}}
{{- end -}}
{{- if hasSuffix "/" . -}}
{{- fail (printf "issuer is %q, which ends with a slash: set issuer to %s" . (trimSuffix "/" .)) -}}
{{- end -}}
{{- $host := "([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\\[[0-9a-f:]+\\])" -}}
{{- $isPlain := regexMatch (printf "^https?://%s(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*$" $host) . -}}
{{- if or (not $isPlain) (regexMatch "^(https://[^/]*:443|http://[^/]*:80)(/|$)|/[.]{1,2}(/|$)" .) -}}
{{- fail (printf "issuer is %q, which is not plain: set issuer to a host in lower case, with a port only where it is not the usual one and a path of letters, digits and ._~-, such as https://id.example.com/auth" .) -}}
{{- end -}}
{{- $url := urlParse . -}}
{{- if and (eq $url.scheme "http") (not (has $url.hostname (list "localhost" "127.0.0.1" "::1"))) -}}
{{- fail (printf "issuer is %q: http is for loopback only, set issuer to https://%s%s" . $url.host $url.path) -}}
{{- end -}}
{{- end -}}

{{/* Names of Services begin with a letter, and names of namespaces have no dot; those of releases need not be so. */}}
{{- define "grantry.nameChecks" -}}
{{- if contains "." .Release.Name -}}
{{- fail (printf "the release is called %s: choose a name without a dot" .Release.Name) -}}
{{- end -}}
{{- if not (regexMatch "^[a-z]" (include "grantry.base" .)) -}}
{{- fail (printf "the release is called %s, and names of Services begin with a letter: set fullnameOverride, such as fullnameOverride=grantry" .Release.Name) -}}
{{- end -}}
{{- range $label, $_ := .Values.commonLabels -}}
{{- if or (hasKey (include "grantry.ownLabels" (list $ "server") | fromYaml) $label) (eq $label "grantry.dev/class") -}}
{{- fail (printf "commonLabels has %s, which the chart sets itself: leave it out" $label) -}}
{{- end -}}
{{- end -}}
{{- if has .Release.Namespace .Values.watchNamespaces -}}
{{- fail (printf "watchNamespaces has %s, which is for grantry alone and where no OAuthClient counts: leave it out" .Release.Namespace) -}}
{{- end -}}
{{- with .Values.tests.namespace -}}
{{- if and $.Values.watchNamespaces (not (has . $.Values.watchNamespaces)) -}}
{{- fail (printf "tests.namespace is %q, whose OAuthClients do not count: set it to one of watchNamespaces" .) -}}
{{- end -}}
{{- if eq . $.Release.Namespace -}}
{{- fail (printf "tests.namespace is %q, which is for grantry alone and where no OAuthClient counts: set it to another" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Limits and the audit stream go by the addresses of callers, which a proxy hides and a forged X-Forwarded-For replaces. */}}
{{- define "grantry.addressChecks" -}}
{{- with .Values -}}
{{- $ways := dict "ingress.enabled" .ingress.enabled "httpRoute.enabled" .httpRoute.enabled "service.type=LoadBalancer" (eq .service.type "LoadBalancer") -}}
{{- range $way, $isOn := $ways -}}
{{- if and $isOn $.Values.config.rateLimits (not $.Values.config.trustedProxies) -}}
{{- fail (printf "%s is set, and config.rateLimits would count the requests of all callers as those of the proxy: set config.trustedProxies to the addresses of the proxy, config.trustedProxies=none if callers connect with their own addresses, or config.rateLimits=false" $way) -}}
{{- end -}}
{{- end -}}
{{- if and (kindIs "slice" .config.trustedProxies) .config.trustedProxies .networkPolicy.enabled (not .networkPolicy.from) -}}
{{- fail "config.trustedProxies is set, and any pod at one of its addresses could forge the address of a caller: set networkPolicy.from to the pods or nodes of the proxy, or networkPolicy.enabled=false if something else admits the proxy alone" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Mutual TLS: where certificates come from, and that no other peer can write the header of the proxy. */}}
{{- define "grantry.mtlsChecks" -}}
{{- with .Values.mtls -}}
{{- if and (or .listener.existingSecret .header.name .header.proxies .clientCa.existingSecret) (not .url) -}}
{{- fail "mtls.listener, mtls.header or mtls.clientCa is set, but mtls.url, which turns mutual TLS on, is not" -}}
{{- end -}}
{{- if and .url (not (or .listener.existingSecret .header.name)) -}}
{{- fail "mtls.url is set, but no client certificate can arrive: set mtls.listener.existingSecret to the certificate of that address, or mtls.header.name to the header of a proxy" -}}
{{- end -}}
{{- if ne (empty .header.name) (empty .header.proxies) -}}
{{- fail "mtls.header.name and mtls.header.proxies need each other: the header is believed of its proxies only" -}}
{{- end -}}
{{- if and .header.name $.Values.networkPolicy.enabled (not $.Values.networkPolicy.from) -}}
{{- fail "mtls.header.name is set, and any pod at an address of mtls.header.proxies could pose as every client: set networkPolicy.from to the pods of the proxy, or networkPolicy.enabled=false if something else admits the proxy alone" -}}
{{- end -}}
{{- if and .listener.existingSecret (or (eq (int .listener.port) (int $.Values.config.port)) (eq (int .listener.port) (int $.Values.config.adminPort))) -}}
{{- fail "mtls.listener.port is config.port or config.adminPort: set it to a port of its own" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The token server has no right to write, and must not get the controller's. */}}
{{- define "grantry.accountChecks" -}}
{{- range $component := list "server" "controller" -}}
{{- with (get $.Values $component).serviceAccount -}}
{{- if not (or .create .name) -}}
{{- fail (printf "%s.serviceAccount.create is false, and no ServiceAccount is named: set %[1]s.serviceAccount.name" $component) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if eq (include "grantry.account" (list . "server")) (include "grantry.account" (list . "controller")) -}}
{{- fail "server.serviceAccount.name and controller.serviceAccount.name are the same, and the token server would get the rights of the controller: set them to two" -}}
{{- end -}}
{{- end -}}

{{- define "grantry.redisChecks" -}}
{{- with .Values.redis -}}
{{- if and .dev.enabled .url -}}
{{- fail "redis.url and redis.dev.enabled are both set: leave redis.url empty to try grantry out, or set redis.dev.enabled=false" -}}
{{- end -}}
{{- if not (or .dev.enabled .url) -}}
{{- fail "there is no Redis: set redis.url, such as redis://redis.example:6379, or redis.dev.enabled=true for one that forgets everything" -}}
{{- end -}}
{{- if and .dev.enabled (or .existingSecret .username) -}}
{{- fail "the controller makes the password of redis.dev.enabled: leave redis.existingSecret and redis.username empty" -}}
{{- end -}}
{{- if and .tls.existingSecret (not (hasPrefix "rediss" .url)) -}}
{{- fail "redis.tls.existingSecret is set, but redis.url does not begin with rediss, which is with TLS" -}}
{{- end -}}
{{- if and .usernameKey (not .existingSecret) -}}
{{- fail "redis.usernameKey is set, but redis.existingSecret, the Secret that it is a key of, is not" -}}
{{- end -}}
{{- if and .usernameKey .username -}}
{{- fail "redis.username and redis.usernameKey both name a user: set one of them" -}}
{{- end -}}
{{- if and .sentinelPasswordKey (not .existingSecret) -}}
{{- fail "redis.sentinelPasswordKey is set, but redis.existingSecret, the Secret that it is a key of, is not" -}}
{{- end -}}
{{- if and (or .tls.certificateKey .tls.keyKey) (not .tls.existingSecret) -}}
{{- fail "redis.tls.certificateKey or redis.tls.keyKey is set, but redis.tls.existingSecret, the Secret that they are keys of, is not" -}}
{{- end -}}
{{- if ne (empty .tls.certificateKey) (empty .tls.keyKey) -}}
{{- fail "redis.tls.certificateKey and redis.tls.keyKey need each other: set both or neither" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A duration such as 1m30s in seconds. */}}
{{- define "grantry.seconds" -}}
{{- $seconds := 0 -}}
{{- range $unit, $factor := dict "h" 3600 "m" 60 "s" 1 -}}
{{- $seconds = regexFind (printf "[0-9]+%s" $unit) $ | trimSuffix $unit | int | mul $factor | add $seconds -}}
{{- end -}}
{{- $seconds -}}
{{- end -}}

{{/*
What is already in the cluster: other installs, and CRDs of another version. `helm template` and other renderings without a
cluster see nothing of it: there the lookup of the namespace kube-system finds nothing.
*/}}
{{- define "grantry.clusterChecks" -}}
{{- if lookup "v1" "Namespace" "" "kube-system" -}}
{{- range $other := include "grantry.installs" (list . .Release.Namespace) | fromYamlArray -}}
{{- if ne $other $.Release.Name -}}
{{- fail (printf "namespace %s holds the release %s already, and keys and pepper are the namespace's: install this one with --namespace set to another" $.Release.Namespace $other) -}}
{{- end -}}
{{- end -}}
{{- range .Values.watchNamespaces -}}
{{- if not (lookup "v1" "Namespace" "" .) -}}
{{- fail (printf "watchNamespaces has %q, which is no namespace of this cluster: create it, or leave it out" .) -}}
{{- end -}}
{{- end -}}
{{- $crd := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "oauthclients.grantry.dev" -}}
{{- if $crd -}}
{{- include "grantry.ownerChecks" (list . $crd) -}}
{{- include "grantry.classChecks" . -}}
{{- include "grantry.versionChecks" (list . $crd) -}}
{{- else if not .Values.crds.enabled -}}
{{- fail "the CRDs of grantry are not in this cluster: set crds.enabled=true, or apply crds/ first" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The install that the CRDs came with, while it is there: (list $ crd). */}}
{{- define "grantry.ownerChecks" -}}
{{- $root := first . -}}
{{- $annotations := (last .).metadata.annotations | default dict -}}
{{- $release := get $annotations "meta.helm.sh/release-name" -}}
{{- $namespace := get $annotations "meta.helm.sh/release-namespace" -}}
{{- if and $release (not (and (eq $release $root.Release.Name) (eq $namespace $root.Release.Namespace))) -}}
{{- range $other := include "grantry.installs" (list $root $namespace) | fromYamlArray -}}
{{- if eq $other $release -}}
{{- if $root.Values.crds.enabled -}}
{{- fail (printf "the CRDs of grantry belong to the release %s in namespace %s: set crds.enabled=false, and className to one of this release's own" $release $namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Two controllers of a class would each undo what the other does. An install has its class as a label of its ClusterRoleBinding. */}}
{{- define "grantry.classChecks" -}}
{{- range (lookup "rbac.authorization.k8s.io/v1" "ClusterRoleBinding" "" "").items -}}
{{- $labels := .metadata.labels | default dict -}}
{{- if and (eq (get $labels "app.kubernetes.io/name") "grantry") (eq (get $labels "grantry.dev/class") $.Values.className) -}}
{{- $release := get $labels "app.kubernetes.io/instance" -}}
{{- $namespace := (first .subjects).namespace -}}
{{- if not (and (eq $release $.Release.Name) (eq $namespace $.Release.Namespace)) -}}
{{- fail (printf "the release %s in namespace %s has the class %q as well: set className to one of this release's own" $release $namespace $.Values.className) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Older CRDs lack fields that are written, and going back to older ones loses fields: (list $ crd). */}}
{{- define "grantry.versionChecks" -}}
{{- $root := first . -}}
{{- $ours := $root.Chart.AppVersion -}}
{{- $theirs := get ((last .).metadata.annotations | default dict) "grantry.dev/version" | default "0.0.0" -}}
{{- /* No constraint, which would leave pre-releases out. */ -}}
{{- $order := (semver $theirs).Compare (semver $ours) -}}
{{- if and $root.Values.crds.enabled (gt $order 0) -}}
{{- fail (printf "the CRDs in this cluster are of grantry %s and this chart is of %s: set crds.enabled=false, which leaves them as they are, or install a chart of %s" $theirs $ours $theirs) -}}
{{- end -}}
{{- if and (not $root.Values.crds.enabled) (lt $order 0) -}}
{{- fail (printf "the CRDs in this cluster are of grantry %s and this chart needs those of %s: upgrade the release they came with first, or apply crds/ of %s" $theirs $ours $ours) -}}
{{- end -}}
{{- end -}}

{{/* The release of each install in a namespace: (list $ namespace). */}}
{{- define "grantry.installs" -}}
{{- $installs := list -}}
{{- range (lookup "apps/v1" "Deployment" (last .) "").items -}}
{{- with .metadata.labels | default dict -}}
{{- if and (eq (get . "app.kubernetes.io/name") "grantry") (eq (get . "app.kubernetes.io/component") "controller") -}}
{{- $installs = append $installs (get . "app.kubernetes.io/instance") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $installs -}}
{{- end -}}
