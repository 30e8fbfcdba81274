# Does what its arguments say: act VERB ARGS [, VERB ARGS]... and prints what came of each, a line each (test/languages.sh).
require 'socket'
require 'open3'

def number_or_text(word)
  Integer(word)
rescue ArgumentError
  word
end

def system_call(number, *arguments)
  syscall(Integer(number), *arguments.map { |word| number_or_text(word) })
end

def open_as(path, flags)
  IO.sysopen(path, flags, 0o644)
end

def foreign
  Dir.children('/proc/self/fd').map { |fd| File.readlink("/proc/self/fd/#{fd}") rescue '' }
     .count { |target| target.start_with?('/') && !target.start_with?('/dev/', '/proc/', '/plugin/', '/usr/') }
end

def fill(path)
  file = File.open(path, 'w')
  loop { file.syswrite("\0" * 65_536) }
end

def bomb
  loop do
    fork { sleep 1000 }
  rescue SystemCallError
    sleep 0.01
  end
end

def daemon
  fork { Process.setsid; sleep 1000 }
end

def act(verb, *words) # rubocop:disable all
  case verb
  when 'read' then IO.new(open_as(words[0], File::RDONLY)).then { |file| File.directory?(file) ? 0 : file.sysread(1) }
  when 'write' then open_as(words[0], File::WRONLY)
  when 'create' then open_as(words[0], File::WRONLY | File::CREAT | File::EXCL)
  when 'chmod' then File.chmod(0o777, words[0])
  when 'remove' then File.unlink(words[0])
  when 'rename' then File.rename(*words)
  when 'link' then File.link(*words)
  when 'symlink' then File.symlink(*words)
  when 'fifo' then File.mkfifo(words[0])
  when 'sparse' then File.open(words[0], 'w') { |file| file.truncate(1 << 40) }
  when 'kill' then Process.kill(Integer(words[1]), Integer(words[0]))
  when 'limit' then return system('prlimit', '--pid', words[0], '--nofile=0:0', err: '/dev/null') ? 'ok' : 'EPERM'
  when 'syscall' then system_call(*words)
  when 'setuid' then Process::Sys.setuid(Integer(words[0]))
  when 'spawn' then return Open3.capture2e(*words)[0].strip
  when 'environment' then return ENV.fetch(words[0], 'unset')
  when 'foreign' then return foreign
  when 'connect' then Socket.new(:UNIX, :STREAM).connect(Socket.pack_sockaddr_un("\0#{words[0]}"))
  when 'open-many' then ($kept = []) && Integer(words[0]).times { $kept << File.open('/dev/null') }
  when 'fill' then fill(words[0])
  when 'exit' then exit(Integer(words[0]))
  when 'die'
    Process.kill(Integer(words[0]), Process.pid)
    sleep 5
  when 'sleep' then sleep 1000
  when 'spin' then loop {}
  when 'hog' then ($kept = []) && loop { $kept << 'x' * 1_000_000 }
  when 'flood' then loop { $stdout.syswrite('y' * 4096) }
  when 'bomb' then bomb
  when 'daemon' then daemon
  end
  'ok'
rescue SystemCallError => error
  error.class.name.split('::').last
end

Signal.trap('TERM', 'SYSTEM_DEFAULT')
ARGV.join(' ').split(' , ').each do |action|
  puts act(*action.split)
  $stdout.flush
end
