{{/* What all pods have in common: (list $ component values). */}}
{{- define "grantry.pod" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- /* A Service called grantry would put GRANTRY_PORT=tcp://… into every pod. */}}
enableServiceLinks: false
securityContext: {{- toYaml $root.Values.podSecurityContext | nindent 2 }}
{{- with index . 2 }}
{{- with .priorityClassName }}
priorityClassName: {{ . | toYaml }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if kindIs "slice" .topologySpreadConstraints }}
{{- with .topologySpreadConstraints }}
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
{{- end }}
{{- end -}}

{{/* As Pod Security "restricted" asks for, and without a file that can be written. */}}
{{- define "grantry.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
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
