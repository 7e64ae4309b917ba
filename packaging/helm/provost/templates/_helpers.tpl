{{- define "provost.labels" -}}
app.kubernetes.io/name: provost
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "provost.selector" -}}
app.kubernetes.io/name: provost
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "provost.scheme" -}}
{{ if .Values.tls.secretName }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}
