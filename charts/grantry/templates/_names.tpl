{{/* (list base part): at most 63 characters. Of what is cut off the base a hash is left, and the part stays readable. */}}
{{- define "grantry.cut" -}}
{{- $base := first . -}}
{{- $part := last . | empty | ternary "" (printf "-%s" (last .)) -}}
{{- if gt (add (len $base) (len $part)) 63 -}}
{{- printf "%s-%s%s" (trunc (int (sub 54 (len $part))) $base | trimSuffix "-") (sha256sum $base | trunc 8) $part -}}
{{- else -}}
{{- print $base $part -}}
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
{{- include "grantry.cut" (list (include "grantry.base" .) "") -}}
{{- end -}}

{{/* The name of a part of this release: (list $ "server"). */}}
{{- define "grantry.name" -}}
{{- include "grantry.cut" (list (include "grantry.base" (first .)) (last .)) -}}
{{- end -}}

{{/* The same for what is cluster-scoped, where several releases meet. */}}
{{- define "grantry.clusterName" -}}
{{- with first . -}}
{{- include "grantry.cut" (list (printf "%s-%s" .Release.Namespace .Release.Name) (last $)) -}}
{{- end -}}
{{- end -}}

{{/* The selector of the pods of a part: (list $ "server"). */}}
{{- define "grantry.selector" -}}
app.kubernetes.io/name: grantry
app.kubernetes.io/instance: {{ (first .).Release.Name | toYaml }}
app.kubernetes.io/component: {{ last . }}
{{- end -}}

{{/* The labels of an object of a part, without those that all objects share by commonLabels: (list $ "server"). */}}
{{- define "grantry.ownLabels" -}}
{{ include "grantry.selector" . }}
{{- with first . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end -}}

{{/* The same with commonLabels, among which are none of these ("grantry.nameChecks"). */}}
{{- define "grantry.labels" -}}
{{ include "grantry.ownLabels" . }}
{{- with (first .).Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The same for objects that have labels of their values as well, which outrank commonLabels: (list $ "monitoring" labels). */}}
{{- define "grantry.labelsWith" -}}
{{- merge (include "grantry.ownLabels" (list (first .) (index . 1)) | fromYaml) (last . | default dict) ((first .).Values.commonLabels | default dict) | toYaml -}}
{{- end -}}

{{/* The labels of the pods of a part: (list $ "server" labels). */}}
{{- define "grantry.podLabels" -}}
{{- merge (include "grantry.selector" (list (first .) (index . 1)) | fromYaml) (last . | default dict) ((first .).Values.commonLabels | default dict) | toYaml -}}
{{- end -}}

{{/* The ServiceAccount of a program: (list $ "server"). */}}
{{- define "grantry.account" -}}
{{- (get (first .).Values (last .)).serviceAccount.name | default (include "grantry.name" .) -}}
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

{{- define "grantry.issuerHost" -}}
{{- include "grantry.issuerChecks" .Values.issuer -}}
{{- (urlParse .Values.issuer).hostname -}}
{{- end -}}

{{/* Below what everything is that is public: a list. The metadata of an issuer with a path is not below it (RFC 8414 §3.1). */}}
{{- define "grantry.publicPaths" -}}
{{- include "grantry.issuerChecks" .Values.issuer -}}
{{- with (urlParse .Values.issuer).path -}}
{{- list . (printf "/.well-known/oauth-authorization-server%s" .) | toYaml -}}
{{- else -}}
{{- list "/" | toYaml -}}
{{- end -}}
{{- end -}}

{{/* Not empty where this release has the policy of all installs. */}}
{{- define "grantry.hasAdmissionPolicy" -}}
{{- $enabled := (.Values.admissionPolicy).enabled -}}
{{- if and (ternary .Values.crds.enabled $enabled (kindIs "invalid" $enabled)) (include "grantry.admitsByPolicy" .) -}}
true
{{- end -}}
{{- end -}}

{{/* Where SigningKeys and IdentityProviders count: a list. */}}
{{- define "grantry.releaseNamespaces" -}}
{{- concat (list .Release.Namespace) ((.Values.admissionPolicy).namespaces | default list) | uniq | toYaml -}}
{{- end -}}

{{/* The namespaces of further installs that admissionPolicy.namespaces lacks: a list. */}}
{{- define "grantry.unlistedNamespaces" -}}
{{- $unlisted := list -}}
{{- range (lookup "rbac.authorization.k8s.io/v1" "ClusterRoleBinding" "" "").items -}}
{{- if hasKey (.metadata.labels | default dict) "grantry.dev/class" -}}
{{- $unlisted = append $unlisted (first .subjects).namespace -}}
{{- end -}}
{{- end -}}
{{- range include "grantry.releaseNamespaces" . | fromYamlArray -}}
{{- $unlisted = without $unlisted . -}}
{{- end -}}
{{- uniq $unlisted | toYaml -}}
{{- end -}}

{{/* Not empty where the API server has ValidatingAdmissionPolicy v1. */}}
{{- define "grantry.admitsByPolicy" -}}
{{- if semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version -}}
true
{{- end -}}
{{- end -}}
