use brine_value::{list, map};

use crate::testing::{Scripted, answers, context_with};

// As written by xfsdump 3.1.11.
#[test]
fn dumps_are_made_listed_and_pruned() {
    let programs = Scripted::new(
        r#"
            $ xfsdump -F -E -L lab -l 0 -f /tmp/xd.dump /tmp/mx
            | xfsdump: session id: d12585c2-6940-4c5f-a10f-b6d6e86006cb
            | xfsdump: session label: "lab"
            | xfsdump: media file size 21016 bytes
            | xfsdump: dump complete: 0 seconds elapsed
            | xfsdump: Dump Summary:
            | xfsdump:   stream 0 /tmp/xd.dump OK (success)
            | xfsdump: Dump Status: SUCCESS
            $ xfsrestore -I
            | file system 0:
            | 	fs id:		16fcd6ed-0f09-40dc-a7ff-6e1886816168
            | 	session 0:
            | 		mount point:	vm:/tmp/mx
            | 		session label:	"lab"
            | 		stream 0:
            | 			pathname:	/tmp/xd.dump
            | 			media file 0:
            | 				mfile index:	0
            | 	session 1:
            | 		level:		1
            | file system 1:
            | 	fs id:		77
            | xfsrestore: Restore Status: SUCCESS
            $ xfsinvutil -s d12585c2-6940-4c5f-a10f-b6d6e86006cb -F
            | Processing file /var/lib/xfsdump/inventory/fstab
            | 		Match on session id
            | -------------------------------------------------
            | Pruning this matching entry:
            | UUID		:	d12585c2-6940-4c5f-a10f-b6d6e86006cb
            | MOUNT POINT	:	vm:/tmp/mx
            | TIME OF DUMP	:	Wed Nov 25 06:21:36 2026
            | -------------------------------------------------
            $ xfsinvutil -s 5 -F
            | Processing file /var/lib/xfsdump/inventory/fstab
            "#,
    );
    let context = context_with(map! {}, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("xfs.dump", list!["/tmp/mx", "/tmp/xd.dump"], map! {"label" => "lab"}),
        ("xfs.inventory", list![], map! {}),
        ("xfs.prune_dump", list!["d12585c2-6940-4c5f-a10f-b6d6e86006cb"], map! {}),
        ("xfs.prune_dump", list!["5"], map! {}),
    ]), @r#"
        xfs.dump: {"Session ID": "d12585c2-6940-4c5f-a10f-b6d6e86006cb", "Session label": "\"lab\"", "Media size": "21016 bytes", "Dump complete": "0 seconds elapsed", "Status": "SUCCESS", "Summary": "stream 0 /tmp/xd.dump OK (success)"}
        xfs.inventory: {"file system 0": {"fs id": "16fcd6ed-0f09-40dc-a7ff-6e1886816168", "session 0": {"mount point": "vm:/tmp/mx", "session label": "\"lab\"", "stream 0": {"pathname": "/tmp/xd.dump", "media file 0": {"mfile index": "0"}}}, "session 1": {"level": "1"}}, "file system 1": {"fs id": "77"}, "restore_status": "xfsrestore: Restore Status: SUCCESS"}
        xfs.prune_dump: {"uuid": "d12585c2-6940-4c5f-a10f-b6d6e86006cb", "mount_point": "vm:/tmp/mx", "time_of_dump": "Wed Nov 25 06:21:36 2026"}
        xfs.prune_dump: ERROR: Session UUID "5" was not found.
        "#);
}

#[test]
fn dumps_are_not_written_where_others_plant_links() {
    let directory = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let context = context_with(map! {}, Scripted::new("$ xfsdump never\n"));
    let destination = directory.path().join("dump").display().to_string();
    let refused = context.call("xfs.dump", brine_function::Args::positional(["/dev/x".into(), destination.into()]));
    assert!(refused.unwrap_err().to_string().contains("other users can write its directory"));
}
