{{- define "toolhub.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "toolhub.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "toolhub.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "toolhub.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "toolhub.selector" -}}
app.kubernetes.io/name: {{ include "toolhub.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "toolhub.labels" -}}
{{ include "toolhub.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "toolhub.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "toolhub.toml" -}}
[store]
url = "${DATABASE_URL}"

[cluster]
nats = {{ .Values.config.nats | quote }}
prefix = {{ .Values.config.prefix | quote }}
{{- if .Values.config.natsCredentials }}
credentials = "/etc/toolhub-nats/nats.creds"
{{- end }}
{{- if .Values.config.sessionKeys }}
session_keys = [{{ range $index, $name := .Values.config.sessionKeys }}{{ if $index }}, {{ end }}"${ {{- $name -}} }"{{ end }}]
{{- end }}

[worker]
labels = {{ .Values.workers.labels | toJson }}
capacity = {{ .Values.workers.capacity }}

[serve]
bind = "0.0.0.0:7460"
drain = "{{ .Values.replicas.drainSeconds }}s"
{{- if .Values.config.hosts }}
hosts = {{ .Values.config.hosts | toJson }}
{{- end }}
{{- with .Values.config.extra }}

{{ . }}
{{- end }}
{{- end -}}

{{- define "toolhub.pod" -}}
serviceAccountName: {{ include "toolhub.fullname" . }}
automountServiceAccountToken: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "toolhub.container" -}}
imagePullPolicy: {{ .Values.image.pullPolicy }}
envFrom:
  - secretRef: { name: {{ .Values.secretName }} }
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end -}}

{{- define "toolhub.mounts" -}}
- { name: config, mountPath: /etc/toolhub, readOnly: true }
- { name: data, mountPath: /data }
- { name: tmp, mountPath: /tmp }
{{- if .Values.config.natsCredentials }}
- { name: nats, mountPath: /etc/toolhub-nats, readOnly: true }
{{- end }}
{{- end -}}

{{- define "toolhub.volumes" -}}
- name: config
  configMap: { name: {{ include "toolhub.fullname" . }} }
- name: tmp
  emptyDir: {}
{{- if .Values.config.natsCredentials }}
- name: nats
  secret:
    secretName: {{ .Values.secretName }}
    defaultMode: 0440
    items: [{ key: {{ .Values.config.natsCredentials }}, path: nats.creds }]
{{- end }}
{{- end -}}
