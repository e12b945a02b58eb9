# Written for another version: nothing else is reported.
enroll {
  required_version = ">= 2.0, < 3.0"
}
site "x" {
  unheard_of {}
}
