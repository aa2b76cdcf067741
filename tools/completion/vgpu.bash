# SPDX-License-Identifier: Apache-2.0
# Completion of vgpu for bash. Commands and options are asked of vgpu itself, which has them in
# tables, so that nothing here can be out of date.

# Where the command that `vgpu run` starts stands in COMP_WORDS; fails where there is none yet.
_vgpu_program_at() {
	local at
	for ((at = 2; at < COMP_CWORD; at++)); do
		case ${COMP_WORDS[at]} in
		--memory | --cores | --cap | --weight | --priority | --device | --exports | --imports | --name | --board) ((at++)) ;;
		--) ((at++)) && break ;;
		-* | =) ;;
		*) break ;;
		esac
	done
	((at <= COMP_CWORD)) && [[ ${COMP_WORDS[at]} != -* ]] && program_at=$at
}

_vgpu() {
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local tool=${COMP_WORDS[0]} program_at words

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		words="$("$tool" help --names 2>/dev/null) --help --version"
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
		return
	fi
	case $previous in
	--memory) words='512m 1g 2g 4g 8g 16g 32g 64g unlimited' ;;
	--device) words=$(nvidia-smi --query-gpu=index,uuid --format=csv,noheader 2>/dev/null | tr , ' ') ;;
	--board) words=$(vgpu-sim boards 2>/dev/null | cut -d ' ' -f 1) ;;
	--cores | --cap) words='10 20 25 30 40 50 60 75 80 90 100' ;;
	--exports) words='none all' ;;
	--imports) words='any own' ;;
	--priority) words='0 1 2 3 4 5 6 7 8 9' ;;
	--name | --weight | --interval | --add-node | --drain | --context | --namespace | -n | --scheduler-name) return ;;
	--node-policy) words='binpack spread' ;;
	--device-policy) words='spread binpack mutex numa topology-aware' ;;
	--region | --nodes | --pods | --config | --kubeconfig)
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
		;;
	esac
	if [[ -z $words && ${COMP_WORDS[1]} == run ]] && _vgpu_program_at; then
		if ((program_at == COMP_CWORD)); then
			mapfile -t COMPREPLY < <(compgen -c -- "$current")
		elif declare -F _command_offset >/dev/null; then
			_command_offset "$program_at"
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$current")
		fi
		return
	fi
	if [[ -z $words && ${COMP_WORDS[1]} == help ]]; then
		words=$("$tool" help --names 2>/dev/null)
	elif [[ -z $words && ${COMP_WORDS[1]} == @(doctor|set|suspend|resume) && $current != -* ]]; then
		words=$("$tool" list 2>/dev/null | sed 1d | cut -d ' ' -f 1 | sort -u)
	elif [[ -z $words ]]; then
		# the lines of options; other words of the text may name those of other programs
		words=$("$tool" help "${COMP_WORDS[1]}" 2>/dev/null | sed -nE 's/^  (-[a-z], )?(--[a-z][a-z-]*).*/\2/p' | sort -u)
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -F _vgpu vgpu
