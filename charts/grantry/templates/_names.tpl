{{/* At most 63 characters: what is cut off is told apart by a hash of the whole. */}}
{{- define "grantry.cut" -}}
{{- if gt (len .) 63 -}}
{{- printf "%s-%s" (trunc 54 . | trimSuffix "-") (sha256sum . | trunc 8) -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{- define "grantry.base" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains "grantry" .Release.Name -}}
{{- .Release.Name -}}
{{- else -}}
{{- printf "%s-grantry" .Release.Name -}}
{{- end -}}
{{- end -}}

{{- define "grantry.fullname" -}}
{{- include "grantry.cut" (include "grantry.base" .) -}}
{{- end -}}

{{/* The name of a part of this release: (list $ "server"). */}}
{{- define "grantry.name" -}}
{{- include "grantry.cut" (printf "%s-%s" (include "grantry.base" (first .)) (last .)) -}}
{{- end -}}

{{/* The same for what is cluster-scoped, where several releases meet. */}}
{{- define "grantry.clusterName" -}}
{{- with first . -}}
{{- include "grantry.cut" (printf "%s-%s-%s" .Release.Namespace .Release.Name (last $)) -}}
{{- end -}}
{{- end -}}

{{/* What pods of a part are selected by: (list $ "server"). */}}
{{- define "grantry.selector" -}}
app.kubernetes.io/name: grantry
app.kubernetes.io/instance: {{ (first .).Release.Name }}
app.kubernetes.io/component: {{ last . }}
{{- end -}}

{{- define "grantry.labels" -}}
{{ include "grantry.selector" . }}
{{- with first . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end -}}

{{/* (list $ image): by digest where there is one. */}}
{{- define "grantry.image" -}}
{{- with last . -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (.tag | default (first $).Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
{{- end -}}
