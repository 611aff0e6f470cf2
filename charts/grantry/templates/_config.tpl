{{/* The variables of the programs, as the data of a ConfigMap: both get the same, and each reads its own. */}}
{{- define "grantry.environment" -}}
{{- $env := dict "issuer" .Values.issuer "namespace" .Release.Namespace "class" .Values.className -}}
{{- $_ := set $env "watchNamespaces" .Values.watchNamespaces -}}
{{- $_ := set $env "serverService" (include "grantry.name" (list . "admin")) -}}
{{- with .Values.redis -}}
{{- $_ := set $env "redisUrl" (.dev.enabled | ternary (printf "redis://%s:6379" (include "grantry.name" (list $ "redis"))) .url) -}}
{{- if .dev.enabled -}}
{{- $_ := set $env "generateRedisPassword" true -}}
{{- end -}}
{{- $_ := set $env "redisUsername" .username -}}
{{- $_ := set $env "redisPrefix" .prefix -}}
{{- $_ := set $env "redisWait" .wait -}}
{{- $_ := set $env "redisStrict" .strict -}}
{{- end -}}
{{- $_ := set $env "initialUser" .Values.users.initialUser -}}
{{- $_ := set $env "signInOrder" (.Values.signIn).order -}}
{{- with .Values.branding -}}
{{- $_ := set $env "brandName" .name -}}
{{- $_ := set $env "brandAccentColor" .accentColor -}}
{{- $_ := set $env "brandAccentColorDark" .accentColorDark -}}
{{- $_ := set $env "brandHelpUrl" (.help).url -}}
{{- $_ := set $env "brandHelpText" (.help).text -}}
{{- $_ := set $env "brandFooter" .footer -}}
{{- end -}}
{{- $_ := set $env "alertWebhookUrl" .Values.webhook.url -}}
{{- with .Values.mtls -}}
{{- $_ := set $env "mtlsUrl" .url -}}
{{- $_ := set $env "mtlsPort" (empty .listener.existingSecret | ternary "" .listener.port) -}}
{{- $_ := set $env "clientCertHeader" .header.name -}}
{{- $_ := set $env "clientCertProxies" .header.proxies -}}
{{- end -}}
{{- range $name, $file := fromYaml (include "grantry.files" .) -}}
{{- $_ := set $env $name (printf "/etc/grantry/%s/%s" $file.folder $file.key) -}}
{{- end -}}
{{- range $name, $value := merge $env .Values.config -}}
{{- if and (eq $name "trustedProxies") (kindIs "string" $value) -}}
{{- /* The word none is for the checks of this chart. */ -}}
{{- $value = "" -}}
{{- else if kindIs "slice" $value -}}
{{- $value = join "," $value -}}
{{- else if kindIs "bool" $value -}}
{{- $value = $value | ternary "on" "off" -}}
{{- else if kindIs "float64" $value -}}
{{- $value = int64 $value -}}
{{- end -}}
{{- if not (or (kindIs "invalid" $value) (eq (toString $value) "")) }}
GRANTRY_{{ snakecase $name | upper }}: {{ $value | quote }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Where the controller puts the password of redis.dev: a value that a template made would change at every rendering. */}}
{{- define "grantry.devRedisSecret" -}}
name: grantry-redis-dev
key: password
{{- end -}}

{{/* Settings that are files: the folder below /etc/grantry, and the Secret or ConfigMap and the key that are mounted there. */}}
{{- define "grantry.files" -}}
{{- $files := dict -}}
{{- with .Values.users }}{{ if .existingSecret -}}
{{- $_ := set $files "usersFile" (dict "folder" "users" "secret" .existingSecret "key" .key) -}}
{{- end }}{{ end -}}
{{- with .Values.branding.logo }}{{ if .existingConfigMap -}}
{{- $_ := set $files "brandLogoFile" (dict "folder" "branding" "configMap" .existingConfigMap "key" .key) -}}
{{- end }}{{ end -}}
{{- with .Values.pepper }}{{ if .existingSecret -}}
{{- $_ := set $files "pepperFile" (dict "folder" "pepper" "secret" .existingSecret "key" .key) -}}
{{- end }}{{ end -}}
{{- with .Values.keyHosts }}{{ if .existingSecret -}}
{{- $_ := set $files "fetchCaFile" (dict "folder" "key-hosts" "secret" .existingSecret "key" .key) -}}
{{- end }}{{ end -}}
{{- with .Values.webhook }}{{ if .existingSecret -}}
{{- $_ := set $files "alertWebhookSecretFile" (dict "folder" "webhook" "secret" .existingSecret "key" .key) -}}
{{- end }}{{ end -}}
{{- with .Values.mtls.clientCa }}{{ if .existingSecret -}}
{{- $_ := set $files "clientCaFile" (dict "folder" "client-ca" "secret" .existingSecret "key" .key) -}}
{{- end }}{{ end -}}
{{- with .Values.mtls.listener }}{{ if .existingSecret -}}
{{- $_ := set $files "mtlsCertFile" (dict "folder" "mtls" "secret" .existingSecret "key" .certificateKey) -}}
{{- $_ := set $files "mtlsKeyFile" (dict "folder" "mtls" "secret" .existingSecret "key" .keyKey) -}}
{{- end }}{{ end -}}
{{- if .Values.redis.dev.enabled -}}
{{- with include "grantry.devRedisSecret" . | fromYaml -}}
{{- $_ := set $files "redisPasswordFile" (dict "folder" "redis" "secret" .name "key" .key) -}}
{{- end -}}
{{- end -}}
{{- with .Values.redis }}{{ if .existingSecret -}}
{{- if .usernameKey -}}
{{- $_ := set $files "redisUsernameFile" (dict "folder" "redis" "secret" .existingSecret "key" .usernameKey) -}}
{{- end -}}
{{- if .passwordKey -}}
{{- $_ := set $files "redisPasswordFile" (dict "folder" "redis" "secret" .existingSecret "key" .passwordKey) -}}
{{- end -}}
{{- if .sentinelPasswordKey -}}
{{- $_ := set $files "redisSentinelPasswordFile" (dict "folder" "redis" "secret" .existingSecret "key" .sentinelPasswordKey) -}}
{{- end -}}
{{- end }}{{ end -}}
{{- with .Values.redis.tls }}{{ if .existingSecret -}}
{{- range $name, $key := dict "redisCaFile" .caKey "redisCertificateFile" .certificateKey "redisKeyFile" .keyKey -}}
{{- if $key -}}
{{- $_ := set $files $name (dict "folder" "redis-tls" "secret" $.Values.redis.tls.existingSecret "key" $key) -}}
{{- end -}}
{{- end -}}
{{- end }}{{ end -}}
{{- toYaml $files -}}
{{- end -}}

{{/* The same by folder: a list of folder, secret or configMap, and keys. */}}
{{- define "grantry.folders" -}}
{{- $folders := dict -}}
{{- range . -}}
{{- $keys := dig .folder "keys" list $folders -}}
{{- $_ := set $folders .folder (merge (dict "keys" (append $keys .key | uniq | sortAlpha)) (omit . "key")) -}}
{{- end -}}
{{- $sorted := list -}}
{{- range $folders }}{{ $sorted = append $sorted . }}{{ end -}}
{{- toYaml $sorted -}}
{{- end -}}
