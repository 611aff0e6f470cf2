{{/* What all pods have in common: (list $ component values). */}}
{{- define "grantry.pod" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $values := index . 2 -}}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- /* A Service called grantry would put GRANTRY_PORT=tcp://… into every pod. */}}
enableServiceLinks: false
securityContext: {{- toYaml $root.Values.podSecurityContext | nindent 2 }}
{{- /* Fields of a pod that are passed on as the values have them. */}}
{{- range $field := list "priorityClassName" "runtimeClassName" "dnsPolicy" "dnsConfig" "hostAliases" "nodeSelector" "tolerations" "affinity" }}
{{- with get $values $field }}
{{ toYaml (dict $field .) }}
{{- end }}
{{- end }}
{{- if kindIs "slice" $values.topologySpreadConstraints }}
{{- with $values.topologySpreadConstraints }}
topologySpreadConstraints: {{- toYaml . | nindent 2 }}
{{- end }}
{{- else }}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "grantry.selector" (list $root $component) | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
{{- end -}}

{{/* The `spec` of a program's Deployment without the number of replicas: (list $ "server" strategy files), with files as in "grantry.files". */}}
{{- define "grantry.deployment" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $folders := include "grantry.folders" (index . 3) | fromYamlArray -}}
{{- $values := get $root.Values $component -}}
{{- if not (kindIs "invalid" $root.Values.revisionHistoryLimit) -}}
revisionHistoryLimit: {{ $root.Values.revisionHistoryLimit }}
{{ end -}}
selector:
  matchLabels: {{- include "grantry.selector" (list $root $component) | nindent 4 }}
strategy: {{- $values.strategy | default (index . 2) | toYaml | nindent 2 }}
template:
  metadata:
    labels: {{- include "grantry.podLabels" (list $root $component $values.podLabels) | nindent 6 }}
    annotations:
      checksum/config: {{ include "grantry.environment" $root | sha256sum }}
      {{- with $values.podAnnotations }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
  spec:
    serviceAccountName: {{ include "grantry.account" (list $root $component) | toYaml }}
    {{- include "grantry.pod" (list $root $component $values) | trim | nindent 4 }}
    {{- with $values.terminationGracePeriodSeconds }}
    terminationGracePeriodSeconds: {{ . }}
    {{- end }}
    containers:
      - name: {{ $component }}
        image: {{ include "grantry.image" (list $root $root.Values.image) | quote }}
        imagePullPolicy: {{ $root.Values.image.pullPolicy }}
        args: [{{ $component }}]
        {{- /* Of variables that name files only the presence counts in the controller: it mounts none of them. */}}
        envFrom:
          - configMapRef:
              name: {{ include "grantry.fullname" $root }}
        {{- with $values.extraEnv }}
        env: {{- toYaml . | nindent 10 }}
        {{- end }}
        ports:
          {{- if eq $component "server" }}
          - name: http
            containerPort: {{ $root.Values.config.port }}
          {{- with $root.Values.mtls.listener }}
          {{- if .existingSecret }}
          - name: mtls
            containerPort: {{ .port }}
          {{- end }}
          {{- end }}
          {{- end }}
          - name: admin
            containerPort: {{ $root.Values.config.adminPort }}
        {{- range $probe, $path := dict "startupProbe" "/livez" "readinessProbe" "/readyz" "livenessProbe" "/livez" }}
        {{- with get $values $probe }}
        {{ $probe }}:
          httpGet: { path: {{ $path }}, port: admin }
          {{- toYaml . | nindent 10 }}
        {{- end }}
        {{- end }}
        resources: {{- toYaml $values.resources | nindent 10 }}
        securityContext: {{- toYaml $root.Values.containerSecurityContext | nindent 10 }}
        {{- if or $folders $values.extraVolumeMounts }}
        volumeMounts:
          {{- range $folders }}
          - name: {{ .folder }}
            mountPath: /etc/grantry/{{ .folder }}
            readOnly: true
          {{- end }}
          {{- with $values.extraVolumeMounts }}
          {{- toYaml . | nindent 10 }}
          {{- end }}
        {{- end }}
      {{- with $values.extraContainers }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- if or $folders $values.extraVolumes }}
    volumes:
      {{- range $folders }}
      - name: {{ .folder }}
        {{- if .configMap }}
        configMap:
          name: {{ .configMap | toYaml }}
        {{- else }}
        secret:
          secretName: {{ .secret | toYaml }}
        {{- end }}
          items:
            {{- range .keys }}
            - key: {{ . | toYaml }}
              path: {{ . | toYaml }}
            {{- end }}
      {{- end }}
      {{- with $values.extraVolumes }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
    {{- end }}
{{- end -}}

{{/* The rules of a role in rbac/: (list $ "server.yaml" "ClusterRole" "grantry-server"). */}}
{{- define "grantry.rules" -}}
{{- $found := dict -}}
{{- $kind := index . 2 -}}
{{- $name := index . 3 -}}
{{- range splitList "\n---\n" ((first .).Files.Get (printf "rbac/%s" (index . 1))) -}}
{{- $object := fromYaml . -}}
{{- if and (eq $object.kind $kind) (eq $object.metadata.name $name) -}}
{{- $_ := set $found "rules" $object.rules -}}
{{- end -}}
{{- end -}}
{{- toYaml (required (printf "rbac/%s has no %s %s" (index . 1) $kind $name) $found.rules) -}}
{{- end -}}
