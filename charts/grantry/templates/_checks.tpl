{{/* What no schema can tell. Each sentence says what to set. */}}
{{- define "grantry.checks" -}}
{{- if not .Values.issuer -}}
{{- fail "issuer is not set: the address that clients know this server by, such as --set issuer=https://id.example.com" -}}
{{- end -}}
{{- $url := urlParse .Values.issuer -}}
{{- if not (has $url.scheme (list "https" "http")) -}}
{{- fail (printf "issuer is %q, which is not an https address: set issuer to one such as https://id.example.com" .Values.issuer) -}}
{{- end -}}
{{- if and (eq $url.scheme "http") (not (has $url.hostname (list "localhost" "127.0.0.1" "::1"))) -}}
{{- fail (printf "issuer is %q: http is for loopback only, set issuer to https://%s%s" .Values.issuer $url.host $url.path) -}}
{{- end -}}
{{- if hasSuffix "/" .Values.issuer -}}
{{- fail (printf "issuer is %q, which ends with a slash: set issuer to %s" .Values.issuer (trimSuffix "/" .Values.issuer)) -}}
{{- end -}}
{{- with .Values.redis -}}
{{- if and .dev.enabled .url -}}
{{- fail "redis.url and redis.dev.enabled are both set: leave redis.url empty to try grantry out, or set redis.dev.enabled=false" -}}
{{- end -}}
{{- if not (or .dev.enabled .url) -}}
{{- fail "there is no Redis: set redis.url, such as redis://redis.example:6379, or redis.dev.enabled=true for one that forgets everything" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.webhook.existingSecret (not .Values.webhook.url) -}}
{{- fail "webhook.existingSecret is set, but webhook.url, where alerts are posted, is not" -}}
{{- end -}}
{{- with .Values.server -}}
{{- if and .autoscaling.enabled (not (kindIs "invalid" .replicas)) -}}
{{- fail "server.replicas and server.autoscaling.enabled are both set: set server.replicas=null and server.autoscaling.minReplicas, or server.autoscaling.enabled=false" -}}
{{- end -}}
{{- end -}}
{{- end -}}
