# A file that torch.load reads, and what is not one.
checkpoint() { # FILE HEADER DATA
  local header=$2
  while [ $((${#header} % 8)) -ne 0 ]; do header+=' '; done
  printf "\\x$(printf %02x ${#header})\0\0\0\0\0\0\0%s%s" "$header" "$3" >"$1"
}
checkpoint in.safetensors '{"a":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]},"f":{"dtype":"F8_E4M3","shape":[],"data_offsets":[4,5]}}' abcde
try etstream ptd in.safetensors --to pth -o out.pth
try etstream inspect out.pth
try etstream verify out.pth
try etstream diff in.safetensors out.pth
try etstream extract out.pth --tensor a -o -
try etstream ptd out.pth --to safetensors -o again.safetensors
etstream ptd out.pth --to pth -o - | cmp - out.pth && echo the same bytes
try etstream ptd in.safetensors --to pth --split-max-size 1K -o never
printf '\x80\x04\x95\0\0\0\0\0\0\0\0.' >plain.pth
try etstream verify plain.pth
head -c 300 out.pth >short.pth
try etstream verify short.pth
