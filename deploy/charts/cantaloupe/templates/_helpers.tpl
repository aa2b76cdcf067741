{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{- define "cantaloupe.name" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "cantaloupe.scheduler" -}}{{ include "cantaloupe.name" . }}-scheduler{{- end -}}
{{- define "cantaloupe.plugin" -}}{{ include "cantaloupe.name" . }}-device-plugin{{- end -}}

{{- define "cantaloupe.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "cantaloupe.schedulerAccount" -}}
{{- default (include "cantaloupe.scheduler" .) .Values.scheduler.serviceAccountName -}}
{{- end -}}

{{- define "cantaloupe.pluginAccount" -}}
{{- default (include "cantaloupe.plugin" .) .Values.devicePlugin.serviceAccountName -}}
{{- end -}}

{{/* what the monitor may do, in the device plugin's pod or outside of it */}}
{{- define "cantaloupe.monitorRules" -}}
- {apiGroups: [""], resources: [pods], verbs: [list, watch]}
- {apiGroups: [""], resources: [events], verbs: [create]}
{{- end -}}

{{- define "cantaloupe.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "cantaloupe.labels" -}}
{{ include "cantaloupe.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.global.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* name and namespace of an object that is in one; the argument is a list of the root and the name */}}
{{- define "cantaloupe.metadata" -}}
{{- $root := index . 0 -}}
name: {{ index . 1 }}
namespace: {{ include "cantaloupe.namespace" $root }}
{{ include "cantaloupe.clusterMetadata" $root }}
{{- end -}}

{{- define "cantaloupe.clusterMetadata" -}}
labels:
  {{- include "cantaloupe.labels" . | nindent 2 }}
{{- with .Values.global.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "cantaloupe.image" -}}
{{- $registry := default .Values.image.registry .Values.global.imageRegistry -}}
{{- if $registry }}{{ $registry }}/{{ end }}{{ .Values.image.repository }}
{{- if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ default (printf "v%s" .Chart.AppVersion) .Values.image.tag }}{{ end -}}
{{- end -}}

{{- define "cantaloupe.kubeSchedulerImage" -}}
{{- $image := .Values.scheduler.kubeScheduler.image -}}
{{- $registry := default $image.registry .Values.global.imageRegistry -}}
{{- if $registry }}{{ $registry }}/{{ end }}{{ $image.repository }}:{{ default (regexFind "^v[0-9]+[.][0-9]+[.][0-9]+" .Capabilities.KubeVersion.Version) $image.tag }}
{{- end -}}

{{/* the argument is a list of the root and a list of secrets of an image */}}
{{- define "cantaloupe.pullSecrets" -}}
{{- $names := list -}}
{{- range concat (index . 0).Values.global.imagePullSecrets (index . 0).Values.image.pullSecrets (index . 1) -}}
{{- $names = append $names (ternary (get (ternary . dict (kindIs "map" .)) "name") . (kindIs "map" .)) -}}
{{- end -}}
{{- with uniq $names }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* the folder of library and regions on the host; HAMi's values name it three times, and nothing else would work */}}
{{- define "cantaloupe.hook" -}}
{{- $hook := printf "%s/vgpu" (.Values.global.gpuHookPath | trimSuffix "/") -}}
{{- with .Values.devicePlugin.libPath }}
{{- if ne (trimSuffix "/" .) $hook }}{{ fail (printf "devicePlugin.libPath is %s, but global.gpuHookPath makes it %s" . $hook) }}{{ end }}
{{- end }}
{{- with .Values.devicePlugin.monitor.ctrPath }}
{{- if ne (trimSuffix "/" .) (printf "%s/containers" $hook) }}{{ fail (printf "devicePlugin.monitor.ctrPath is %s, but global.gpuHookPath makes it %s/containers" . $hook) }}{{ end }}
{{- end }}
{{- $hook -}}
{{- end -}}

{{- define "cantaloupe.leads" -}}
{{- if and .Values.scheduler.leaderElect .Values.scheduler.kubeScheduler.enabled }}true{{ end -}}
{{- end -}}

{{- define "cantaloupe.replicas" -}}
{{- ternary .Values.scheduler.replicas 1 (eq (include "cantaloupe.leads" .) "true") -}}
{{- end -}}

{{- define "cantaloupe.webhookHosts" -}}
{{- $service := printf "%s.%s.svc" (include "cantaloupe.scheduler" .) (include "cantaloupe.namespace" .) -}}
{{- $hosts := list $service "localhost" "127.0.0.1" -}}
{{- if .Values.scheduler.admissionWebhook.customURL.enabled -}}
{{- $hosts = append $hosts .Values.scheduler.admissionWebhook.customURL.host -}}
{{- end -}}
{{- join "," (uniq $hosts) -}}
{{- end -}}

{{- define "cantaloupe.guardConfig" -}}
{{- with .Values.scheduler.admissionWebhook.customURL }}
{{- if .enabled }}
url: https://{{ .host }}:{{ .port }}/guard
{{- else }}
service:
  name: {{ include "cantaloupe.scheduler" $ }}
  namespace: {{ include "cantaloupe.namespace" $ }}
  path: /guard
  port: {{ $.Values.scheduler.service.httpPort }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "cantaloupe.clientConfig" -}}
{{- with .Values.scheduler.admissionWebhook.customURL }}
{{- if .enabled }}
url: https://{{ .host }}:{{ .port }}{{ .path }}
{{- else }}
service:
  name: {{ include "cantaloupe.scheduler" $ }}
  namespace: {{ include "cantaloupe.namespace" $ }}
  path: /webhook
  port: {{ $.Values.scheduler.service.httpPort }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "cantaloupe.metricsPort" -}}
{{- regexFind "[0-9]+$" .Values.scheduler.metricsBindAddress -}}
{{- end -}}
